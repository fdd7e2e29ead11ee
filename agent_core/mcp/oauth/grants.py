"""Sign-ins at remote servers (OAuth 2.1): what one gave, what one needs, who keeps both."""

from typing import Protocol

from msgspec import Struct


class SignInFailed(Exception):
    """A sign-in cannot go on; the text says why, in no words of a server."""


class Parties(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who a sign-in is between, as the SDK's JSON: our registration, the authorization server's
    metadata, the resource's."""

    client: str
    server: str = ""
    resource: str = ""

    def __repr__(self) -> str:
        return "Parties(…)"


class ServerGrant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one person may use one server with. `expires`: seconds since 1970, 0: not known."""

    access: str
    parties: Parties
    refresh: str = ""
    scope: str = ""
    expires: float = 0.0

    def __repr__(self) -> str:
        return "ServerGrant(…)"


class PendingSignIn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sign-in whose person is at the authorization server. `url`: where they go."""

    url: str
    verifier: str
    redirect: str
    parties: Parties
    scope: str = ""

    def __repr__(self) -> str:
        return "PendingSignIn(…)"


class SignInOffer(Struct, frozen=True, kw_only=True):
    """How a person signs in: by `link`, which is "" where others would read it. `local`: it is
    good on the gateway's machine only."""

    link: str = ""
    local: bool = False


class SignInDesk(Protocol):
    """The sign-ins of one person, as one conversation reaches them."""

    @property
    def person(self) -> str:
        """Who it is."""

    def read(self, server: str) -> ServerGrant | None:
        """What they are signed in with; None: they are not."""

    def keep(self, server: str, grant: ServerGrant | None) -> None:
        """Keep what a sign-in or a refresh gave, or forget it. Raises SignInFailed."""

    async def offer(self, server: str) -> SignInOffer:
        """A new way to sign in, which ends at this conversation."""
