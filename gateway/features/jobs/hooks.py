"""`POST /hooks/<name>`: a signed call from outside starts the hook's job once; or, if that job
talks, a turn in its conversation.

A hook has one way of signing, given with its secret; all are HMAC-SHA256: Standard Webhooks (id,
time and body), our own plain one (time and body), GitHub's (the body alone). A signature of one way
is never accepted as another's. A call is recognised by its signed content, on every replica, and by
nothing else.
"""

import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from agent_core import ambient
from gateway.declaration import MIN_SECRET, SettingsError
from gateway.features.jobs.hook_calls import KnownCalls
from gateway.jobs_port import MAX_CALLS, Job, JobPorts, JobRefused, RunState, cut_given
from gateway.messages import WebhookCalled, digest, read_conversation
from gateway.ports import Accept, HookAnswer
from gateway.services.vault import Vault
from gateway.store.port import Inbox
from gateway.texts import say

log = logging.getLogger("turnkeeper.hooks")

ADDRESS = "hooks"
"""The vault's address of their secrets: no conversation has it, so no command gets one."""
WINDOW = 300.0
"""Maximum seconds between the clocks, delivery included."""
STANDARD = "whsec_"
"""Prefix of a base64 secret in Standard Webhooks."""
Way = Literal["standard", "plain", "github"]
NOT_SIGNED = (
    "The call is not signed as this gateway expects. Sign it with the hook's secret, at the time "
    "of the call; docs/jobs.md says how."
)


class HookSecret(Struct, frozen=True, kw_only=True):
    """The secret of a hook, and the one way of signing that it is for."""

    way: Way
    value: str = ""

    @property
    def key(self) -> bytes:
        """The signing key; b"" if the secret has none."""
        if self.way != "standard":
            return self.value.encode()
        try:
            return base64.b64decode(self.value.removeprefix(STANDARD), validate=True)
        except binascii.Error:
            return b""


class Signed(Struct, frozen=True, kw_only=True):
    """A signature to verify: `content` was signed; `name` identifies the call, b"" if only its
    signature does."""

    content: bytes
    signatures: tuple[bytes, ...]
    name: bytes = b""
    at: float | None = None
    """Seconds since 1970; None: the way of signing has no time."""


def secret_name(hook: str, way: Way = "standard") -> str:
    """Return the vault's name of a hook's secret. The value itself tells the plain way from
    Standard Webhooks."""
    name = f"HOOK_{hook.upper().replace('-', '_')}"
    return f"GITHUB_{name}" if way == "github" else name


def check_secret(way: Way, value: str) -> None:
    """Check a secret for this way of signing. ValueError with the mend."""
    if value.startswith(STANDARD) != (way == "standard"):
        raise ValueError(
            f"A secret that begins with {STANDARD} is for Standard Webhooks alone, which take no "
            "other. Give another one."
        )
    if len(HookSecret(way=way, value=value).key) < MIN_SECRET:
        coded = " in base64" if way == "standard" else ""
        raise ValueError(
            f"A hook's secret needs at least {MIN_SECRET} characters{coded}. `turnkeeper jobs "
            "secret` makes a good one."
        )


def find_secret(vault: Vault, hook: str) -> HookSecret | None:
    """Return the secret of a hook, None if it has none."""
    if value := vault.value(ADDRESS, secret_name(hook, "github")):
        return HookSecret(way="github", value=value)
    value = vault.value(ADDRESS, secret_name(hook))
    way: Way = "standard" if value.startswith(STANDARD) else "plain"
    return HookSecret(way=way, value=value) if value else None


def keep_secret(vault: Vault, hook: str, way: Way, value: str) -> None:
    """Give a hook this secret alone. UnfitSecret, and ValueError as `check_secret`."""
    check_secret(way, value)
    vault.keep(ADDRESS, secret_name(hook, way), value)
    vault.drop(ADDRESS, secret_name(hook, "plain" if way == "github" else "github"))


def check_secrets(vault: Vault) -> None:
    """SettingsError for a secret of a hook that can be guessed."""
    for name in vault.names(ADDRESS):
        value = vault.value(ADDRESS, name)
        github = name.startswith("GITHUB_")
        way: Way = "github" if github else "standard" if value.startswith(STANDARD) else "plain"
        try:
            check_secret(way, value)
        except ValueError as error:
            raise SettingsError(name, "", f"{error} (secrets.json holds it.)") from None


class WebhookCalls:
    """gateway.ports.WebhookReceiver over the book and the vault, which is read for each call."""

    def __init__(
        self, jobs: JobPorts, vault: Vault, calls: KnownCalls, inbox: Inbox, accept: Accept
    ) -> None:
        self._jobs = jobs
        self._vault = vault
        self._calls = calls
        self._inbox, self._accept = inbox, accept

    async def call(self, name: str, headers: Mapping[str, str], body: bytes) -> HookAnswer:
        """Check the signature, then begin the run. Nothing is looked up for who cannot sign."""
        secret = find_secret(self._vault, name)
        signed = read_signature(headers, body, secret.way) if secret else None
        mac = find_mac(signed, secret.key, ambient.now()) if signed and secret else b""
        if signed is None or secret is None or not mac:
            way = secret.way if secret else "none"
            log.warning("hook_refused", extra={"hook": name[:32], "way": way})
            return HookAnswer(status=401, text=NOT_SIGNED)
        try:
            given = body.decode()
        except UnicodeDecodeError:
            return HookAnswer(status=400, text="The body is not UTF-8. Send it as UTF-8.")
        jobs = await self._jobs.store.list_jobs()
        job = next((job for job in jobs if job.hook == name and not job.is_over), None)
        if job is None:
            return HookAnswer(status=404, text=f"No job has the hook {name}. Make one first.")
        return await self._begin(job, secret.way, signed.name or mac, mac, given)

    async def _begin(
        self, job: Job, way: Way, known_by: bytes, mac: bytes, given: str
    ) -> HookAnswer:
        """Begin the run of a call, or find it."""
        name = digest(way.encode() + b" " + known_by)
        note = await self._calls.claim(job.hook, name, f"hook-{digest(way.encode() + b' ' + mac)}")
        run = await self._jobs.store.run(job.id, note.slot) if note.begun else None
        state: RunState = run.state if run is not None else "done"
        if not note.begun:
            try:
                begin = self._talk if job.talk else self._jobs.book.call
                state = await begin(job, note.slot, given)
            except JobRefused as error:
                return HookAnswer(status=503, text=str(error))
            await self._calls.mark_begun(job.hook, name, note)
        log.info("hook_called", extra={"hook": job.hook, "job": job.id, "slot": note.slot})
        return HookAnswer(status=202, job=job.id, run=note.slot, state=state)

    async def _talk(self, job: Job, slot: str, given: str) -> RunState:
        """Put the call into the job's conversation; once, by the slot. JobRefused if too many wait
        there."""
        if job.state == "paused":
            return "skipped"
        called = WebhookCalled(
            conversation=read_conversation(job.conversation),
            event=f"hook:{job.id}:{slot}",
            name=job.title,
            text=cut_given(given),
            prompt=job.prompt,
        )
        rows = await self._inbox.arrivals(job.conversation, 0)
        waiting = {row.inbound.event for row in rows if isinstance(row.inbound, WebhookCalled)}
        if len(waiting - {called.event}) >= MAX_CALLS:
            raise JobRefused(say("jobs_busy", n=MAX_CALLS))
        await self._accept([called])
        return "fired"


def read_signature(headers: Mapping[str, str], body: bytes, way: Way) -> Signed | None:
    """Parse the signature of this way from the headers, None if there is no valid one."""
    try:
        match way:
            case "standard":
                return _read_standard(headers, body)
            case "plain":
                moment = _read_time(headers["x-turnkeeper-timestamp"])
                return Signed(
                    content=f"{moment:.0f}.".encode() + body,
                    signatures=(_read_hex(headers["x-turnkeeper-signature"]),),
                    at=moment,
                )
            case "github":
                return Signed(content=body, signatures=(_read_hex(headers["x-hub-signature-256"]),))
    except (KeyError, ValueError, binascii.Error):
        return None


def _read_standard(headers: Mapping[str, str], body: bytes) -> Signed:
    name, time = headers["webhook-id"], headers["webhook-timestamp"]
    if not name or len(name) > 256:
        raise ValueError
    parts = (one.partition(",") for one in headers["webhook-signature"].split()[:8])
    found = tuple(filter(None, (_read_base64(mac) for way, _, mac in parts if way == "v1")))
    content = f"{name}.{time}.".encode() + body
    return Signed(content=content, signatures=found, name=name.encode(), at=_read_time(time))


def _read_time(text: str) -> float:
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise ValueError
    return float(text)


def _read_base64(text: str) -> bytes:
    """Return b"" for what is none: another signature beside it may be good."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _read_hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("sha256="))


def find_mac(signed: Signed, key: bytes, now: float) -> bytes:
    """Return the signature by `key` if it is among those given and the time is near, otherwise b"",
    in constant time."""
    wanted = hmac.new(key, signed.content, hashlib.sha256).digest()
    good = False
    for mac in signed.signatures:
        good |= hmac.compare_digest(mac, wanted)
    near = signed.at is None or abs(now - signed.at) <= WINDOW
    return wanted if key and good and near else b""
