"""Sign-ins of people at tool servers: their links, OAuth states and tokens.

Tokens are in the vault, by person and server. The store keeps one document for each account about
its links and states, with digests in place of secrets: a link is valid for a day and one sign-in, a
state for ten minutes, in the browser that began it.
"""

import base64
import binascii
import logging
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.mcp.oauth.grants import (
    Parties,
    PendingSignIn,
    ServerGrant,
    SignInFailed,
    SignInOffer,
)
from gateway.access.codes import hash_secret, is_secret_of, load_document
from gateway.messages import ButtonPressed, Conversation, Sender, plugin_token
from gateway.ports import Accept, NoteAudit, SignInStep
from gateway.services.vault import UnfitSecret, Vault
from gateway.store.port import Directory

log = logging.getLogger("turnkeeper.sign_ins")

KIND = "signin:"
"""Name prefix of the documents, before an account's key."""
VAULT = "mcp:"
"""Prefix of the vault's addresses of tokens."""
FEATURE, SIGNED_IN = "servers", "signed_in"
"""The press by which a conversation is told."""
LASTS, STATE_LASTS = 86_400.0, 600.0
"""Seconds for which a link, and a state, are valid."""
MAX_LINKS = 10
"""Maximum links of one account; a newer one replaces the oldest."""
TRIES = 5
CALLBACK = "servers/callback"


class SignInTicket(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One link: the digest of its secret, its person and server. `state` and `browser`: digests
    that the callback must match; `until_state`: when these expire."""

    link: str
    server: str
    conversation: Conversation
    sender: Sender
    until: float
    state: str = ""
    browser: str = ""
    until_state: float = 0.0
    pending: PendingSignIn | None = None


class SignInBook(Struct, frozen=True, kw_only=True):
    """The document `signin:<account>`."""

    tickets: tuple[SignInTicket, ...] = ()


class SignInFlow(Protocol):
    """The two halves of a sign-in at a server. Each raises SignInFailed."""

    async def begin_sign_in(self, person: str, name: str, redirect: str) -> PendingSignIn:
        """Return the authorization address, and the state for `finish_sign_in`."""

    async def finish_sign_in(
        self, name: str, pending: PendingSignIn, code: str, issuer: str
    ) -> ServerGrant:
        """The tokens."""

    def drop(self, person: str, name: str) -> None:
        """Close connections made with other tokens."""


class SignIns:
    """All sign-ins. `base`: the prefix of links; `public`: it is reachable from elsewhere."""

    def __init__(self, directory: Directory, vault: Vault, base: str, *, public: bool) -> None:
        self._directory, self._vault = directory, vault
        self._public = public
        self.base = base

    def of_person(
        self, sender: Callable[[], Sender], conversation: Conversation
    ) -> "PersonalSignIns":
        """Return the sign-ins of one person; `sender` is called when they are needed."""
        return PersonalSignIns(self, sender, conversation)

    def read(self, person: str, server: str) -> ServerGrant | None:
        """Return the person's grant for the server."""
        kept = self._vault.read_all(_address(person, server))
        if "ACCESS_TOKEN" not in kept:
            return None
        try:
            rest = msgspec.json.decode(kept.get("SIGN_IN", ""), type=_Rest)
        except msgspec.DecodeError:
            return None
        return ServerGrant(
            access=kept["ACCESS_TOKEN"],
            refresh=kept.get("REFRESH_TOKEN", ""),
            scope=rest.scope,
            expires=rest.expires,
            parties=rest.parties,
        )

    def keep(self, person: str, server: str, grant: ServerGrant | None) -> None:
        """Keep it, or forget it. Raises SignInFailed."""
        values: dict[str, str] = {}
        if grant is not None:
            rest = _Rest(scope=grant.scope, expires=grant.expires, parties=grant.parties)
            values = {"ACCESS_TOKEN": grant.access, "SIGN_IN": msgspec.json.encode(rest).decode()}
            if grant.refresh:
                values["REFRESH_TOKEN"] = grant.refresh
        try:
            self._vault.replace_all(_address(person, server), values)
        except UnfitSecret as error:
            raise SignInFailed(str(error)) from None

    async def offer(self, sender: Sender, conversation: Conversation, server: str) -> SignInOffer:
        """Offer the person a new link; none where others would read it, but the conversation is
        told of the sign-in."""
        secret = ambient.secret_id()
        ticket = SignInTicket(
            link=hash_secret(secret) if conversation.private else "",
            server=server,
            conversation=conversation,
            sender=sender,
            until=ambient.now() + LASTS,
        )
        await self._change(sender.key, lambda known: (*known, ticket)[-MAX_LINKS:])
        if not conversation.private:
            return SignInOffer()
        log.info("sign_in_offered", extra={"account": sender.key, "server": server})
        link = f"{self.base}servers/signin/{_make_token(sender.key, secret)}"
        return SignInOffer(link=link, local=not self._public)

    async def find(self, token: str) -> SignInTicket | None:
        """Return the ticket of a link, None if it is not valid."""
        person, secret = _read_token(token)
        return await self._find(person, lambda one: is_secret_of(one.link, secret))

    async def find_state(self, state: str, browser: str) -> SignInTicket | None:
        """Return the ticket of a state, in the browser where it was begun."""
        person, secret = _read_token(state)

        def fits(one: SignInTicket) -> bool:
            late = one.until_state <= ambient.now()
            return (
                not late and is_secret_of(one.state, secret) and is_secret_of(one.browser, browser)
            )

        return await self._find(person, fits)

    async def _find(self, person: str, fits: Callable[[SignInTicket], bool]) -> SignInTicket | None:
        if not person:
            return None
        book, _ = await load_document(self._directory, KIND + person, SignInBook)
        tickets = book.tickets if book is not None else ()
        return next((one for one in tickets if one.until > ambient.now() and fits(one)), None)

    async def list_waiting(self, person: str, server: str) -> tuple[Conversation, ...]:
        """Conversations in which the person was asked to sign in there."""
        book, _ = await load_document(self._directory, KIND + person, SignInBook)
        tickets = book.tickets if book is not None else ()
        return tuple(one.conversation for one in tickets if one.server == server)

    async def note_begun(self, ticket: SignInTicket, pending: PendingSignIn) -> tuple[str, str]:
        """Store a begun sign-in. Return its state and the value that the browser must bring
        back."""
        state, browser = ambient.secret_id(), ambient.secret_id()
        begun = replace(
            ticket,
            state=hash_secret(state),
            browser=hash_secret(browser),
            until_state=ambient.now() + STATE_LASTS,
            pending=pending,
        )

        def change(known: tuple[SignInTicket, ...]) -> tuple[SignInTicket, ...]:
            return tuple(begun if one.link == ticket.link else one for one in known)

        await self._change(ticket.sender.key, change)
        return _make_token(ticket.sender.key, state), browser

    async def take(self, ticket: SignInTicket) -> bool:
        """Use its state up. Return False if it is used already. The link may be tried again."""
        taken = False

        def change(known: tuple[SignInTicket, ...]) -> tuple[SignInTicket, ...]:
            nonlocal taken
            left = tuple(one for one in known if one.state != ticket.state)
            taken = len(left) < len(known)
            again = replace(ticket, state="", browser="", until_state=0.0, pending=None)
            return (*left, again) if taken else left

        await self._change(ticket.sender.key, change)
        return taken

    async def use_up(self, ticket: SignInTicket) -> None:
        """End the link: it has signed its person in."""
        await self._change(
            ticket.sender.key, lambda known: tuple(one for one in known if one.link != ticket.link)
        )

    async def _change(
        self, person: str, change: Callable[[tuple[SignInTicket, ...]], tuple[SignInTicket, ...]]
    ) -> None:
        for _ in range(TRIES):
            book, body = await load_document(self._directory, KIND + person, SignInBook)
            now = ambient.now()
            known = tuple(one for one in (book.tickets if book else ()) if one.until > now)
            new = msgspec.json.encode(SignInBook(tickets=change(known)))
            if await self._directory.put(KIND + person, new, body or b""):
                return
        raise SignInFailed("too many sign-ins at once")


class PersonalSignIns:
    """`SignInPort` of one person in one conversation."""

    def __init__(
        self, sign_ins: SignIns, sender: Callable[[], Sender], conversation: Conversation
    ) -> None:
        self._sign_ins, self._sender, self._conversation = sign_ins, sender, conversation

    @property
    def person(self) -> str:
        """The person's key."""
        return self._sender().key

    def read(self, server: str) -> ServerGrant | None:
        """Return the person's grant for the server."""
        return self._sign_ins.read(self.person, server)

    def keep(self, server: str, grant: ServerGrant | None) -> None:
        """Store the result of a sign-in or a refresh, None to forget it."""
        self._sign_ins.keep(self.person, server, grant)

    async def offer(self, server: str) -> SignInOffer:
        """A new way to sign in, which ends at this conversation."""
        return await self._sign_ins.offer(self._sender(), self._conversation, server)


class SignInVisits:
    """`ports.SignInPages` for visitors of a link. `accept` notifies the conversation."""

    def __init__(
        self, sign_ins: SignIns, flow: SignInFlow, accept: Accept, note: NoteAudit
    ) -> None:
        self._sign_ins, self._flow = sign_ins, flow
        self._accept, self._note = accept, note

    async def look(self, token: str) -> SignInStep:
        """Return the person and purpose of a link, without side effects."""
        ticket = await self._sign_ins.find(token)
        return _describe(ticket, "asked") if ticket is not None else OVER

    async def begin(self, token: str) -> SignInStep:
        """Begin the sign-in; raises StoreFailed."""
        ticket = await self._sign_ins.find(token)
        if ticket is None:
            return OVER
        redirect = f"{self._sign_ins.base}{CALLBACK}"
        try:
            pending = await self._flow.begin_sign_in(ticket.sender.key, ticket.server, redirect)
            state, browser = await self._sign_ins.note_begun(ticket, pending)
        except SignInFailed as error:
            return _fail(ticket, error)
        step = _describe(ticket, "onward")
        return replace(step, url=f"{pending.url}&state={state}", browser=browser)

    async def finish(self, state: str, code: str, issuer: str, browser: str) -> SignInStep:
        """Finish the sign-in, once, and resume the conversation. Raises StoreFailed."""
        ticket = await self._sign_ins.find_state(state, browser)
        if ticket is None or ticket.pending is None:
            return OVER
        person, server = ticket.sender.key, ticket.server
        try:
            if not await self._sign_ins.take(ticket):
                return OVER
            if not code:
                return _describe(ticket, "failed")
            grant = await self._flow.finish_sign_in(server, ticket.pending, code, issuer)
            self._sign_ins.keep(person, server, grant)
            await self._sign_ins.use_up(ticket)
        except SignInFailed as error:
            return _fail(ticket, error)
        self._flow.drop(person, server)
        await self._note(person, "server_signed_in", server)
        others = await self._sign_ins.list_waiting(person, server)
        for conversation in {one.id: one for one in (ticket.conversation, *others)}.values():
            await self._tell(ticket, conversation)
        return _describe(ticket, "done")

    async def _tell(self, ticket: SignInTicket, conversation: Conversation) -> None:
        press = ButtonPressed(
            conversation=conversation,
            sender=ticket.sender,
            event=f"signed-in-{ambient.new_id()}",
            message="",
            token=plugin_token(FEATURE, SIGNED_IN, ticket.server),
        )
        await self._accept([press])


class _Rest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Data stored beside the tokens."""

    parties: Parties
    scope: str = ""
    expires: float = 0.0


def forget_sign_ins(vault: Vault, accounts: frozenset[str]) -> None:
    """Forget all tokens of these accounts. Blocks."""
    for address in vault.addresses():
        kind, _, rest = address.partition(":")
        if f"{kind}:" == VAULT and rest.partition(":")[2] in accounts:
            vault.replace_all(address, {})


def _address(person: str, server: str) -> str:
    return f"{VAULT}{server}:{person}"


def _describe(
    ticket: SignInTicket, outcome: Literal["asked", "onward", "failed", "done"]
) -> SignInStep:
    sender = ticket.sender
    name = sender.name or sender.handle or sender.id
    return SignInStep(outcome=outcome, server=ticket.server, person=name, platform=sender.platform)


def _fail(ticket: SignInTicket, error: SignInFailed) -> SignInStep:
    log.warning("sign_in_failed", extra={"server": ticket.server, "why": str(error)})
    return _describe(ticket, "failed")


OVER = SignInStep(outcome="over")


def _make_token(person: str, secret: str) -> str:
    """Encode the person and a secret for a URL."""
    return f"{base64.urlsafe_b64encode(person.encode()).decode().rstrip('=')}.{secret}"


def _read_token(token: str) -> tuple[str, str]:
    """Return the person and the secret of a token, "" for both if it is none."""
    coded, _, secret = token.partition(".")
    try:
        person = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    except (binascii.Error, ValueError):
        return "", ""
    return (person, secret) if secret and len(token) < 1_000 else ("", "")
