"""Sign-ins at remote servers (OAuth 2.1): their results, their state, and their storage."""

from typing import Protocol

from msgspec import Struct


class SignInFailed(Exception):
    """A sign-in cannot go on; the text says why, in no words of a server."""


class Parties(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parties of a sign-in as the SDK's JSON: our registration, the authorization server's
    metadata, the resource's."""

    client: str
    server: str = ""
    resource: str = ""

    def __repr__(self) -> str:
        return "Parties(…)"


class ServerGrant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's grant for a server. `expires`: seconds since 1970, 0: unknown."""

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
    """A way to sign in: by `link`, which is "" where others would read it. `local`: it works on the
    gateway's machine only."""

    link: str = ""
    local: bool = False


class SignInPort(Protocol):
    """The sign-ins of one person, as one conversation reaches them."""

    @property
    def person(self) -> str:
        """The person's key."""

    def read(self, server: str) -> ServerGrant | None:
        """Return the person's grant for the server, None if they are not signed in."""

    def keep(self, server: str, grant: ServerGrant | None) -> None:
        """Store the result of a sign-in or a refresh, None to forget it. Raises SignInFailed."""

    async def offer(self, server: str) -> SignInOffer:
        """A new way to sign in, which ends at this conversation."""
