"""`POST /hooks/<name>`: a signed call from outside begins the job that has the hook, once.

Three ways to sign are known, all HMAC-SHA256 with the hook's secret: Standard Webhooks (id, time
and body), our own plain one (time and body), and GitHub's (the body alone). What is signed names
the run's slot, so a call that comes again, at whatever replica, finds its run. The slot never comes
from anything that is not signed."""

import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from agent_core import ambient
from gateway.jobs_port import JobRefused
from gateway.messages import digest
from gateway.ports import HookAnswer
from gateway.services.jobs.book import JobService
from gateway.services.vault import Vault

log = logging.getLogger("turnkeeper.hooks")

ADDRESS = "hooks"
"""Where the vault keeps their secrets: no conversation has this address, so no command gets one."""
WINDOW = 300.0
"""Seconds that the clocks may differ, and that a call may be under way."""
STANDARD = "whsec_"
"""Begins a secret that is base64, as Standard Webhooks have it."""
NOT_SIGNED = (
    "The call is not signed as this gateway expects. Sign it with the hook's secret, at the time "
    "of the call; docs/jobs.md says how."
)


class Signed(Struct, frozen=True, kw_only=True):
    """What a signature says, to be checked: `content` was signed, `slot` names the call."""

    content: bytes
    signatures: tuple[bytes, ...]
    slot: str
    at: float | None = None
    """Seconds since 1970; None: the way of signing has no time."""


def secret_name(hook: str) -> str:
    """What the vault calls the secret of a hook."""
    return f"HOOK_{hook.upper().replace('-', '_')}"


class WebhookCalls:
    """gateway.ports.Hooks over the book and the vault, which is read anew for each call."""

    def __init__(self, book: JobService, vault: Vault) -> None:
        self._book = book
        self._vault = vault

    async def call(self, name: str, headers: Mapping[str, str], body: bytes) -> HookAnswer:
        """Check the signature, then begin the run. Nothing is looked up for who cannot sign."""
        secret = self._vault.value(ADDRESS, secret_name(name))
        signed = read_signature(headers, body)
        if not secret or signed is None or not is_verified(signed, secret, ambient.now()):
            log.warning("hook_refused", extra={"hook": name[:32], "secret": bool(secret)})
            return HookAnswer(status=401, text=NOT_SIGNED)
        try:
            given = body.decode()
        except UnicodeDecodeError:
            return HookAnswer(status=400, text="The body is not UTF-8. Send it as UTF-8.")
        jobs = await self._book.jobs.list_jobs()
        job = next((job for job in jobs if job.hook == name and job.state != "ended"), None)
        if job is None:
            return HookAnswer(status=404, text=f"No job has the hook {name}. Make one first.")
        try:
            state = await self._book.call(job, signed.slot, given)
        except JobRefused as error:
            return HookAnswer(status=503, text=str(error))
        log.info("hook_called", extra={"hook": name, "job": job.id, "slot": signed.slot})
        return HookAnswer(status=202, job=job.id, run=signed.slot, state=state)


def read_signature(headers: Mapping[str, str], body: bytes) -> Signed | None:
    """The signature that the headers hold, None if there is none that can be read. The first of
    the three ways decides; none is tried after another failed."""
    try:
        if "webhook-signature" in headers:
            return _standard(headers, body)
        if "x-turnkeeper-signature" in headers:
            time = headers.get("x-turnkeeper-timestamp", "")
            content = f"{_time(time):.0f}.".encode() + body
            mac = _hex(headers["x-turnkeeper-signature"])
            return Signed(content=content, signatures=(mac,), slot=_slot(content), at=_time(time))
        if "x-hub-signature-256" in headers:
            mac = _hex(headers["x-hub-signature-256"])
            return Signed(content=body, signatures=(mac,), slot=_slot(body))
    except (ValueError, binascii.Error):
        return None
    return None


def _standard(headers: Mapping[str, str], body: bytes) -> Signed:
    name, time = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not name or len(name) > 256:
        raise ValueError
    parts = (one.partition(",") for one in headers["webhook-signature"].split()[:8])
    found = tuple(base64.b64decode(mac, validate=True) for way, _, mac in parts if way == "v1")
    content = f"{name}.{time}.".encode() + body
    return Signed(content=content, signatures=found, slot=_slot(name.encode()), at=_time(time))


def _time(text: str) -> float:
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise ValueError
    return float(text)


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("sha256="))


def _slot(named: bytes) -> str:
    return f"hook-{digest(named)}"


def is_verified(signed: Signed, secret: str, now: float) -> bool:
    """One of the signatures is the secret's, and the time is near. Takes the same time for each
    wrong signature."""
    keys = [secret.encode()]
    if secret.startswith(STANDARD):
        with suppress(binascii.Error):
            keys.append(base64.b64decode(secret.removeprefix(STANDARD), validate=True))
    good = False
    for one in keys:
        wanted = hmac.new(one, signed.content, hashlib.sha256).digest()
        for mac in signed.signatures:
            good |= hmac.compare_digest(mac, wanted)
    return good and (signed.at is None or abs(now - signed.at) <= WINDOW)
