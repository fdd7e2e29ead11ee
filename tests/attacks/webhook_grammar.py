"""Calls of a webhook: signed as they have to be, in any dress, and forged in one thing."""

import base64
import hashlib
import hmac
import json
import random
from collections.abc import Callable

from msgspec import Struct

WINDOW = 300
"""Seconds that the clocks may differ."""
Pairs = tuple[tuple[str, str], ...]


class Key(Struct, frozen=True, kw_only=True):
    """The way in which a hook's calls, or Slack's, are signed, and the secret as it is written."""

    way: str
    written: str

    @property
    def raw(self) -> bytes:
        """What signs."""
        if self.way == "standard":
            return base64.b64decode(self.written.removeprefix("whsec_"))
        return self.written.encode()


class Call(Struct, frozen=True, kw_only=True):
    """A request. `good`: it is signed as it has to be."""

    headers: Pairs
    body: bytes
    good: bool
    how: str
    method: str = "POST"


class _Parts(Struct, kw_only=True):
    """What a signature is made of, and how it is written."""

    key: bytes
    body: bytes
    sent: bytes
    name: str
    at: str
    hash: str = "sha256"
    write: Callable[[bytes], str] | None = None
    prefix: str | None = None


BODIES: tuple[bytes, ...] = (
    *(b"{}", b"[]", b"null", b"0", b'""', b" ", b"a=b&c=d", b"{", "{\"\u00e9\": \"\u202e\"}".encode()),
    *(b'{"a": 1, "b": [1, 2]}', b'{"b":2,"a":1}', b'{"a":1.0}', b'{"a":"\\u0041"}', b"\r\n", b"a" * 9_000),
)  # fmt: skip
_MORE: tuple[tuple[str, str], ...] = (
    ("Content-Type", "application/json"), ("Content-Type", "text/plain"), ("User-Agent", "curl/8"),
    ("X-Forwarded-For", "127.0.0.1"), ("X-Original-URL", "/api/jobs"), ("X-HTTP-Method-Override", "GET"),
    ("Authorization", "Bearer none"), ("Cookie", "a=b"), ("X-Hub-Signature", "sha1=" + "0" * 40),
)  # fmt: skip


_PREFIXES = {"standard": "v1,", "slack": "v0="}
WAYS = ("standard", "plain", "github")


def _sign(way: str, parts: _Parts) -> dict[str, str]:
    if way == "github":
        content = parts.body
    elif way == "plain":
        content = f"{parts.at}.".encode() + parts.body
    elif way == "slack":
        content = f"v0:{parts.at}:".encode() + parts.body
    else:
        content = f"{parts.name}.{parts.at}.".encode() + parts.body
    mac = hmac.new(parts.key, content, parts.hash).digest()
    write = parts.write or (_in_base64 if way == "standard" else bytes.hex)
    prefix = _PREFIXES.get(way, "sha256=") if parts.prefix is None else parts.prefix
    signed = prefix + write(mac)
    if way == "slack":
        return {"X-Slack-Request-Timestamp": parts.at, "X-Slack-Signature": signed}
    if way == "github":
        return {"X-Hub-Signature-256": signed, "X-GitHub-Delivery": parts.name}
    if way == "plain":
        return {"X-Turnkeeper-Timestamp": parts.at, "X-Turnkeeper-Signature": signed}
    return {"webhook-id": parts.name, "webhook-timestamp": parts.at, "webhook-signature": signed}


def _in_base64(mac: bytes) -> str:
    return base64.b64encode(mac).decode()


def _parts(key: Key, now: int, chance: random.Random, body: bytes = b"") -> _Parts:
    body = body or chance.choice(BODIES) + str(chance.randrange(10**9)).encode()
    moment = now + chance.choice((0, -1, -WINDOW + 30, WINDOW - 30))
    return _Parts(
        key=key.raw, body=body, sent=body, name=f"msg_{chance.randrange(10**9)}", at=str(moment)
    )


def draw_true(key: Key, now: int, chance: random.Random, body: bytes = b"") -> Call:
    """A call that has to be taken, in some dress. `body`: what it says, where that matters."""
    parts = _parts(key, now, chance, body)
    headers = _sign(key.way, parts)
    if key.way == "standard" and chance.random() < 0.5:
        name = "webhook-signature"
        beside = chance.choice(
            (
                "v1,AAAA {}",
                "v1,%%% {}",
                "{} v1,",
                "v1a,x {}",
                "{} v2,AAAA",
                f"v1,{_in_base64(bytes(32))} {{}}",
            )
        )
        headers[name] = beside.format(headers[name])
    spell = chance.choice((str, str.lower, str.upper, str.title))
    pairs = [(spell(name), value) for name, value in headers.items()]
    more = [one for one in _MORE if not body or one[0] != "Content-Type"]
    pairs += dict(chance.sample(more, chance.randrange(3))).items()
    chance.shuffle(pairs)
    return Call(headers=tuple(pairs), body=parts.sent, good=True, how="true")


Forge = Callable[[Key, _Parts, random.Random], None]
FORGERIES: dict[str, Forge] = {}


def _forgery(forge: Forge) -> Forge:
    FORGERIES[forge.__name__.lstrip("_")] = forge
    return forge


@_forgery
def _another_key(key: Key, parts: _Parts, chance: random.Random) -> None:
    written, raw = key.written.encode(), key.raw
    keys = (
        b"",
        b"secret",
        bytes(32),
        raw[:-1],
        raw + b"\n",
        raw[::-1],
        raw.upper(),
        raw * 2,
        hashlib.sha256(raw).digest(),
    )
    parts.key = chance.choice(
        [one for one in (*keys, written + b" ", base64.b64encode(raw)) if one != raw]
    )


@_forgery
def _another_body(key: Key, parts: _Parts, chance: random.Random) -> None:
    body = parts.body
    made = [
        body + b"\n",
        body + b" ",
        b" " + body,
        b"\xef\xbb\xbf" + body,
        body.upper() + b"x",
        body[:-1],
        b"",
        body * 2,
    ]
    try:
        made.append(json.dumps(json.loads(body), indent=1).encode() + b"\n")
    except ValueError:
        made.append(body.replace(b"a", b"b") + b"1")
    parts.sent = chance.choice([one for one in made if one != body])


@_forgery
def _another_hash(key: Key, parts: _Parts, chance: random.Random) -> None:
    parts.hash = chance.choice(("sha1", "sha512", "sha384", "md5", "sha3_256", "blake2s"))


@_forgery
def _another_way_to_write(key: Key, parts: _Parts, chance: random.Random) -> None:
    right = _in_base64 if key.way == "standard" else bytes.hex
    ways: tuple[Callable[[bytes], str], ...] = (
        lambda mac: right(mac[:-1]), lambda mac: right(mac[:16]), lambda mac: right(mac[:0]), lambda mac: right(mac + b"\0"),
        lambda mac: right(mac) + right(mac), lambda mac: right(mac[::-1]), lambda mac: right(bytes(32)), lambda mac: right(mac)[1:],
        lambda mac: right(bytes((mac[0] ^ 1, *mac[1:]))), lambda mac: right(bytes((*mac[:-1], mac[-1] ^ 128))), lambda mac: "",
        lambda mac: mac.hex() if key.way == "standard" else _in_base64(mac), lambda mac: f"0x{mac.hex()}", lambda mac: "*",
    )  # fmt: skip
    parts.write = chance.choice(ways)


@_forgery
def _another_name_of_the_hash(key: Key, parts: _Parts, chance: random.Random) -> None:
    right = _PREFIXES.get(key.way, "sha256=")
    others = ("sha1=", "v0=", "v2,", "none,", "sha512=", "sha256:", "hmac ", "v1=", '"', "", "V0=")
    parts.prefix = chance.choice(
        [one for one in others if one not in ("", right) or right == "v0="]
    )
    if parts.prefix == right:
        parts.prefix = "v0"


@_forgery
def _another_time(key: Key, parts: _Parts, chance: random.Random) -> None:
    if key.way == "github":  # has none
        return _another_key(key, parts, chance)
    now, far = int(parts.at), chance.choice((WINDOW * 3, 3_600, 10**6))
    parts.at = chance.choice(
        (str(now - far), str(now + far), "0", "-1", f"{now * 1000}", f"{now}.5", f"+{now}", f"{now:e}", hex(now), "now", "nan", "inf",
         "1" * 40, "2026-01-01T00:00:00Z", f"{now},{now}", f"{now}.{now}", "None")
    )  # fmt: skip
    return None


_FRAMES: dict[str, Callable[[dict[str, str], str, str], None]] = {
    "left out": lambda headers, name, value: None,
    "empty": lambda headers, name, value: headers.update({name: ""}),
    "of another name": lambda headers, name, value: headers.update({f"x-{name}": value}),
    "with an underscore": lambda headers, name, value: headers.update(
        {name.replace("-", "_"): value}
    ),
}
METHODS = ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def draw_forged(key: Key, now: int, chance: random.Random, body: bytes = b"") -> Call:
    """A call that must begin nothing: all is right but one thing."""
    others = ("of another way", "by another method", "moved", "twice")
    how = chance.choice((*FORGERIES, *_FRAMES, *others))
    parts = _parts(key, now, chance, body)
    if how in FORGERIES:
        FORGERIES[how](key, parts, chance)
    headers, method = _sign(key.way, parts), "POST"
    if how in _FRAMES:
        name = chance.choice([one for one in headers if one != "X-GitHub-Delivery"])
        _FRAMES[how](headers, name, headers.pop(name))
    elif how == "of another way":
        headers = _sign(chance.choice([one for one in WAYS if one != key.way]), parts)
    elif how == "by another method":
        method = chance.choice(METHODS)
    elif how == "moved":  # time or id of another call beside this one's signature
        name = next(iter(headers))
        late = key.way in ("plain", "slack")
        headers[name] = str(int(headers[name]) + 1) if late else f"{headers[name]}0"
        parts.sent = parts.sent + b"0" if key.way == "github" else parts.sent
    pairs = list(headers.items())
    if how == "twice":  # whoever stands between may have looked at the other one
        name = chance.choice([one for one in headers if one != "X-GitHub-Delivery"])
        pairs.insert(chance.randrange(len(pairs) + 1), (name, f"{headers[name]}0"))
    return Call(headers=tuple(pairs), body=parts.sent, good=False, how=how, method=method)


TOKEN = "X-Telegram-Bot-Api-Secret-Token"


def draw_told(secret: str, chance: random.Random, body: bytes) -> Call:
    """A call of Telegram's, which tells a secret instead of signing, in some dress."""
    spell = chance.choice((str, str.lower, str.upper, str.title))
    pairs = [(spell(TOKEN), chance.choice(("{}", " {}", "{}  ", "\t{}")).format(secret))]
    pairs += dict(chance.sample(_MORE, chance.randrange(3))).items()
    chance.shuffle(pairs)
    return Call(headers=tuple(pairs), body=body, good=True, how="true")


_TOLD: dict[str, Callable[[str], Pairs]] = {
    "without": lambda secret: (),
    "empty": lambda secret: ((TOKEN, ""),),
    "cut": lambda secret: ((TOKEN, secret[:-1]),),
    "its end": lambda secret: ((TOKEN, secret[1:]),),
    "longer": lambda secret: ((TOKEN, secret + "a"),),
    "twice in one": lambda secret: ((TOKEN, secret * 2),),
    "in a list": lambda secret: ((TOKEN, f"a, {secret}"),),
    "at a list's head": lambda secret: ((TOKEN, f"{secret}, a"),),
    "in quotes": lambda secret: ((TOKEN, f'"{secret}"'),),
    "in capitals": lambda secret: ((TOKEN, secret.swapcase()),),
    "with a blank": lambda secret: ((TOKEN, f"{secret[:3]} {secret[3:]}"),),
    "in base64": lambda secret: ((TOKEN, base64.b64encode(secret.encode()).decode()),),
    "in hex": lambda secret: ((TOKEN, secret.encode().hex()),),
    "escaped": lambda secret: ((TOKEN, "".join(f"%{ord(one):02x}" for one in secret)),),
    "with a letter that looks so": lambda secret: ((TOKEN, secret.replace("a", "\u00e4")),),
    "its digest": lambda secret: ((TOKEN, hashlib.sha256(secret.encode()).hexdigest()),),
    "of another name": lambda secret: (("X-Telegram-Secret-Token", secret),),
    "with underscores": lambda secret: ((TOKEN.replace("-", "_"), secret),),
    "as a bearer": lambda secret: (("Authorization", f"Bearer {secret}"),),
    "in a cookie": lambda secret: (("Cookie", f"{TOKEN}={secret}"),),
    "a wildcard": lambda secret: ((TOKEN, "*"),),
    "nothing by name": lambda secret: ((TOKEN, "None"),),
    "a second wrong one": lambda secret: ((TOKEN, secret), (TOKEN, "a")),
    "a first wrong one": lambda secret: ((TOKEN, "a"), (TOKEN, secret)),
}


def draw_untold(secret: str, chance: random.Random, body: bytes) -> Call:
    """A call that only looks like Telegram's."""
    how = chance.choice((*_TOLD, "by another method"))
    if how in _TOLD:
        return Call(headers=_TOLD[how](secret), body=body, good=False, how=how)
    method = chance.choice(METHODS)
    return Call(headers=((TOKEN, secret),), body=body, good=False, how=how, method=method)
