"""Errors of adapters and stores, and the reactions of their callers.

Exception
  DeliveryError
    RateLimited      the platform said 'not now': wait `retry_after` seconds, then the same call
    Unsent           nothing reached the platform: the same call may be made again
      TokenRefused   not before somebody sets a token that the platform takes
      FileNotTaken   not as long as this file is not taken: other calls may pass
    Ambiguous        the call may have been carried out: reconcile or label
    Rejected         the platform will never take this payload
      Gone           the message to edit is not there any more
  StoreFailed        the store did not keep what it was given: nothing was written
    Unstorable       it will never keep this content: the same write fails each time
    Unreadable       a stored row is there that this version cannot read
    StoreUnfit       it cannot be opened as it is: no restart helps, somebody has to act
  Fenced             another holder owns the conversation: nothing was written
  SettingsError      (gateway.declaration) a setting cannot work
"""

import math

MIN_LIMIT, MAX_LIMIT = 0.05, 3600.0
"""Seconds for which the gateway waits at a platform's word; longer limits are met again."""
DAY = 86_400.0


def read_limit(told: object, default: float = 1.0) -> float:
    """Return how long to wait at a platform's word, in seconds: `default` if it says nothing, or
    what no platform means: a negative time, none that is finite, more than a day."""
    try:
        seconds = float(told) if isinstance(told, int | float | str) else default
    except (ValueError, OverflowError):
        seconds = default
    meant = math.isfinite(seconds) and 0.0 < seconds <= DAY
    return min(max(seconds if meant else default, MIN_LIMIT), MAX_LIMIT)


class DeliveryError(Exception):
    """A call to a platform did not end well."""


class RateLimited(DeliveryError):
    """The platform limits us, for so many seconds as it told: `retry_after` can be waited for,
    whatever that was."""

    def __init__(self, told: object) -> None:
        self.retry_after = read_limit(told)
        super().__init__(f"rate limited for {self.retry_after:g} s")


class Unsent(DeliveryError):
    """Nothing reached the platform."""


class TokenRefused(Unsent):
    """The platform takes our token no longer; the adapter's `last_contact` is 0."""


class FileNotTaken(Unsent):
    """The place for a file does not take it, although the platform itself answers."""


class Ambiguous(DeliveryError):
    """The platform may have carried the call out; its answer was lost."""


class Rejected(DeliveryError):
    """The platform refuses this payload for good; the text is its reason."""


class ChatClosed(Rejected):
    """The agent may not write in this chat: it was removed or blocked, or the chat is gone."""


class Gone(Rejected):
    """The message to edit was deleted."""


class StoreFailed(Exception):
    """The store did not write (disk full, Redis unreachable). Nothing was stored; a retry may
    succeed."""


class StoreUnfit(StoreFailed):
    """The store cannot be opened as it is; the text says what to do."""


class Unstorable(StoreFailed):
    """The store refuses this content, now and always. Nothing was written."""


class Unreadable(StoreFailed):
    """A stored row cannot be read by this version; the text says which, and why."""


class Fenced(Exception):
    """The lease's token is not the newest: another holder owns the conversation."""
