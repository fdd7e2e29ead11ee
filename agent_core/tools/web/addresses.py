"""The addresses that the agent may reach: strict parsing of URLs, and a table of networks.

The text of a URL does not tell where it leads (`0x7f.1`, names that resolve to a private address):
`is_public` is asked about the address of each connection, right before it is made.
"""

import ipaddress
import re
import unicodedata
from contextlib import suppress
from urllib.parse import urlsplit

from msgspec import Struct

from agent_core.phrases import Phrase, phrase

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
MAX_URL = 4_000

_NETWORKS = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
    "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
    "3fff::/20", "5f00::/16",
    "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)  # fmt: skip
_CLOSED = tuple(map(ipaddress.ip_network, _NETWORKS))
"""Networks that `is_global` gets wrong, at least in some Python versions; also the address of cloud
metadata services."""

_INSIDE_ENDS = (
    *(".localhost", ".local", ".internal", ".localdomain", ".lan", ".intranet", ".corp"),
    *(".private", ".home.arpa", ".in-addr.arpa", ".ip6.arpa", ".svc", ".consul", ".default"),
    *(".mail", ".intra", ".localnet", ".workgroup", ".domain", ".lxd", ".incus", ".onion", ".alt"),
    *(".home", ".router", ".cluster", ".metadata.goog", ".metadata.tencentyun.com"),
    *(".metadata.packet.net", ".metadata.platformequinix.com", ".fritz.box", ".pi.hole"),
    *(".speedport.ip", ".router.asus.com", ".routerlogin.net", ".tplinkwifi.net", ".miwifi.com"),
)
"""Suffixes of names of private networks, of metadata services, and of routers."""
_SPELLED_ENDS = (
    *(".localtest.me", ".lvh.me", ".vcap.me", ".lacolhost.com", ".local.gd"),
    *(".nip.io", ".sslip.io", ".xip.io", ".traefik.me", ".local-ip.co"),
    *(".rbndr.us", ".1u.ms", ".localho.st", ".xip.name", ".backname.io", ".local-ip.sh"),
    *(".fuf.me", ".smackaho.st", ".lcl.host", ".spoofed.burpcollaborator.net", ".rebind.it"),
    *(".bugbounty.dod.network", ".mail.ebc.apple.com", ".rebind.network", ".readme.ssrf.tools"),
)
"""Suffixes of public names that lead to any address spelled in them, or to this machine."""
_OTHER_PORTS = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101}
    | {102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389}
    | {427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636}
    | {989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566}
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080}
)
"""Ports of other protocols, which take a request for orders of theirs: https://fetch.spec.whatwg.org
"bad port". No browser reads a page from them either."""
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_SPELLED = re.compile(r"(?<=\.)\d{1,3}(?:\.\d{1,3}){3}(?=\.)")
_NUMBER = re.compile(r"(0[xo])?[0-9a-f]*")
_ALIKE = frozenset("асԁеһіјӏорԛѕԝхуъьҽпгѵѡ")  # noqa: RUF001
"""Cyrillic letters that look like Latin ones."""
_LOOKALIKE_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
_ODD = re.compile(r"[\x00-\x20\x7f\\<>`\"]")
_ODD_PLACE = re.compile(r"[{|}^]")
"""Signs that pages have in their queries, but no host has."""
_OUTERMOST = re.compile(r"[a-z]+|xn--[a-z0-9-]+")
"""Matches the last part of a public name: without digits, unless it encodes another alphabet's
letters."""


class Unreachable(ValueError):
    """The URL may not be read; the text says why."""


class Target(Struct, frozen=True, kw_only=True):
    """The target of a strictly parsed URL. `url`: as written, without its fragment."""

    url: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """`host:port`, as an operator's list has it."""
        return f"{self.host}:{self.port}"


def is_public(text: str) -> bool:
    """Return True if the address belongs to the public internet, including any address embedded in
    it."""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(
        one.is_global and not one.is_multicast and not any(one in net for net in _CLOSED)
        for one in (_unwrap(address), *_tunnel_targets(address))
    )


def why_closed(target: Target) -> Phrase | None:
    """Return why a URL's host is internal by its words, None if it is not. Asks no DNS: other names
    are checked when a connection is made."""
    host = target.host
    try:
        ipaddress.ip_address(host)
    except ValueError:
        named = "." not in host or f".{host}".endswith((*_INSIDE_ENDS, *_SPELLED_ENDS))
        named = named or any(not is_public(one) for one in _list_spelled(host))
    else:
        named = not is_public(host)
    return phrase("why_inside", place=host) if named else None


def _list_spelled(host: str) -> list[str]:
    """Return the IPv4 addresses spelled in a name's labels: such names lead to them, whoever serves
    them. Labels that are no address by their numbers are skipped."""
    found = _SPELLED.findall(f".{host}.")
    return [one for one in found if all(int(part) < 256 for part in one.split("."))]


def _unwrap(address: Address) -> Address:
    """Unwrap an IPv4 address written as an IPv6 one (mapped, or by NAT64)."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _tunnel_targets(address: Address) -> tuple[Address, ...]:
    """Addresses that a tunnel's address leads to (6to4, Teredo, ISATAP)."""
    if not isinstance(address, ipaddress.IPv6Address):
        return ()
    last = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    isatap = (last,) if int(address) >> 32 & 0xFDFFFFFF == 0x5EFE else ()
    return (*filter(None, (address.sixtofour,)), *(address.teredo or ()), *isatap)


def read_url(text: str) -> Target:
    """Parse a URL of the web. Raises Unreachable for an ambiguous one: what one parser takes for a
    host, another takes for something else."""
    if len(text) > MAX_URL or _ODD.search(text) or any(map(_is_invisible, text)):
        raise Unreachable("The URL is too long or has characters that no URL has.")
    if not re.match(r"https?://[^/?#]", text, re.IGNORECASE):
        raise Unreachable("Only http:// and https:// URLs can be read.")
    try:
        parts = urlsplit(text)
        port = parts.port if parts.port is not None else 443 if parts.scheme == "https" else 80
    except ValueError:
        raise Unreachable("The URL cannot be read.") from None
    if _ODD_PLACE.search(parts.netloc):
        raise Unreachable("The URL is too long or has characters that no URL has.")
    if "@" in text.split("/")[2] or "%" in parts.netloc:  # also after `#` and `?`
        raise Unreachable("A URL with a user name, a password or an encoded host is not read.")
    if not port or parts.netloc.endswith(":"):
        raise Unreachable("The URL's port is none.")
    if port in _OTHER_PORTS:
        raise Unreachable("The URL's port belongs to another protocol than the web's.")
    host = _host(parts.hostname or "", parts.netloc)
    return Target(url=text.partition("#")[0], host=host, port=port)


def _host(host: str, netloc: str) -> str:
    if netloc.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError:
            raise Unreachable("The URL's host is not an address.") from None
    if unicodedata.normalize("NFKC", host) != host or not all(map(_is_of_name, host)):
        raise Unreachable("The URL's host has letters that stand for others.")
    if any(map(_looks_like_another, host.split("."))):
        raise Unreachable("The URL's host has letters that look like others.")
    try:
        plain = host.lower() if host.isascii() else host.encode("idna").decode().lower()
    except UnicodeError:
        raise Unreachable("The URL's host is no name.") from None
    if not _NAME.fullmatch(plain) or len(plain) > 253:
        raise Unreachable("The URL's host is no name.")
    plain = plain.rstrip(".")
    if _NUMBER.fullmatch(plain.rpartition(".")[2]) and not _is_dotted(plain):
        last = plain.rpartition(".")[2]
        if last.isdigit() or last.startswith(("0x", "0o")):
            raise Unreachable("The URL's host is a number; write the address plainly.")
    if (
        "." in plain
        and not _is_dotted(plain)
        and not _OUTERMOST.fullmatch(plain.rpartition(".")[2])
    ):
        raise Unreachable("The URL's host is no name.")
    return plain


def _is_of_name(char: str) -> bool:
    return char in "-._" or unicodedata.category(char)[0] in "LMN"


def _looks_like_another(label: str) -> bool:
    """Return True if the label mixes alphabets with similar letters, or consists of look-alikes of
    another one."""
    if label.lower().startswith("xn--"):
        with suppress(UnicodeError):
            label = label[4:].encode().decode("punycode")
    if label.isascii():
        return False
    letters = [char for char in label if char.isalpha()]
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in letters}
    return len(scripts & _LOOKALIKE_SCRIPTS) > 1 or _ALIKE.issuperset(letters)


def _is_dotted(host: str) -> bool:
    try:
        return str(ipaddress.IPv4Address(host)) == host
    except ValueError:
        return False


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")
