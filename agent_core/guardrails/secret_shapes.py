"""How secrets look: the forms in which a known one may be written, and the shapes of those that
providers give out.

Each shape but a private key is one run of a token's characters, perhaps behind a word such as
`Bearer`. So text that comes in pieces needs to wait for the end of a run and for nothing else.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from math import ceil
from urllib.parse import quote, quote_plus

SHORTEST = 6
"""Characters of a form: a shorter one stands in texts by chance."""
MARK = "[secret]"
MAX_RUN = 4_096
"""Characters of a run that may still grow into a token."""
MAX_KEY = 16_000
"""Characters of a private key."""
_LOOKS_BACK = 64
_RUN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+=:~@%?&#!*^,$")
_BEGIN = "-----BEGIN"
_CONTEXT = (
    r"(?:(?:Bearer|Basic|token"
    r"|(?:client[_-]?|aws[_-]?)?(?:secret|passw(?:or)?d)(?:[_-]?access)?(?:[_-]?key)?|api[_-]?key"
    r"|passphrase|pwd|-u|[_-](?:key|pat)"
    r"|(?:access|auth|session|security)[_-]?(?:key|token)|private[_-]?key(?:_id)?)"
    r"[\"']?[ \t]{0,4}[=:]?[ \t]{0,4}[\"']?)"
)
_GAP = r"(?:\s|\\[nr]){0,4}"
_HEADER = rf"{_GAP}(?:Proc-Type|DEK-Info|Version|Comment): [\w., :-]{{1,80}}(?:\s|\\[nr])"
_KEY = (
    # nothing but a key is hidden between the lines: a card must show the rest of a command
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_HEADER}){{0,4}}+(?:{_GAP}[A-Za-z0-9+/=]{{20,12000}}){{0,400}}+"
    rf"(?:{_GAP}=?[A-Za-z0-9+/=]{{1,76}}(?={_GAP}(?:-----END|=)))?"
    rf"(?:{_GAP}=[A-Za-z0-9+/]{{4}})?(?:{_GAP}-----END [A-Z ]{{0,40}}-----)?"
)
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]{0,40}-{0,5}")
_KEY_ENDS = re.compile(r"-----END [A-Z ]{0,40}-----\Z")
_KEY_GOES_ON = re.compile(r"[A-Za-z0-9+/=\s\\:,. -]{0,120}")
_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("-----BEGIN ",), _KEY),
    ((":",), r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,60}(?!\w)"),
    (
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
        r"\b[spr]k-(?:proj|ant|or|svcacct|admin|live|test|v1)[A-Za-z0-9_-]{12,}"
        r"|\b[spr]k[-_][A-Za-z0-9]{20,}|\b[spr]k_(?:live|test)_[A-Za-z0-9]{8,}",
    ),
    (("xox", "xapp-"), r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}"),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl"),
        r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
        r"|\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w-]{16,}",
    ),
    (("AIza", "ya29.", "GOCSPX-"), r"\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}"),
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    (("eyJ",), r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}|\bops_eyJ[\w-]{80,}"),
    (
        (
            *("e2b_", "hf_", "gsk_", "r8_", "npm_", "rubygems_", "figd_", "ntn_", "whsec_"),
            *("lin_api_", "dop_v1_", "doo_v1_", "shpat_", "shpca_", "shppa_", "shpss_"),
        ),
        r"\b(?:e2b|hf|gsk|r8|npm|rubygems|figd|ntn|whsec|lin_api|dop_v1|doo_v1|shp(?:at|ca|pa|ss))"
        r"_[\w+/-]{20,}={0,2}",
    ),
    (
        (
            *("xai-", "pplx-", "tvly-", "nvapi-", "xkeysib-", "PMAK-", "pypi-", "sntrys_"),
            *("dckr_pat_", "ATATT", "ATCTT", "AGE-SECRET-KEY-1"),
        ),
        r"\b(?:xai|pplx|tvly|nvapi|xkeysib|PMAK|pypi|sntrys|dckr_pat|ATATT|ATCTT)[-_]?[\w=-]{24,}"
        r"|\bAGE-SECRET-KEY-1[0-9A-Z]{40,}",
    ),
    (
        ("SG.", "hvs.", "dapi", "key-"),
        r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhvs\.[\w-]{20,}|\bdapi[0-9a-f]{32}\b"
        r"|\bkey-[0-9a-f]{32}\b",
    ),
    (("SK", "-us"), r"\bSK[0-9a-f]{32}\b|\b[0-9a-f]{32}-us\d{1,2}\b"),
    (("-",), r"\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b"),
    (
        ("AccountKey=", "secret_", ".atlasv1.", "sl."),
        r"(?<=AccountKey=)[\w+/]{40,}={0,2}|\bsecret_[A-Za-z0-9]{40,}"
        r"|\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}|\bsl\.[\w-]{100,}",
    ),
    (
        ("sq0atp-", "sq0csp-", "dp.", "NRAK-", "sbp_", "fm2_", "pul-", "pscale_", "sntryu_"),
        r"\bsq0(?:atp|csp)-[\w-]{20,}|\bdp\.(?:pt|st|ct|sa)\.[\w.-]{32,}|\bNRAK-[A-Z0-9]{24,}"
        r"|\bsbp_[0-9a-f]{36,}|\bfm2_[\w+/=-]{40,}|\bpul-[0-9a-f]{36,}"
        r"|\bpscale_\w{2,6}_[\w-]{30,}|\bsntryu_[0-9a-f]{40,}",
    ),
    (
        (
            *(
                "glsa_",
                "glc_",
                "squ_",
                "sqp_",
                "sqa_",
                "HRKU-",
                "nfp_",
                "vercel_blob_",
                "rnd_",
                "fw_",
            ),
            *("esecret_", "lsv2_", "pcsk_", "sb_secret_", "napi_", "sgp_", "bkua_", "CCIPAT_"),
            *("CLOJARS_", "CFPAT-", "access_token$"),
        ),
        r"\b(?:glsa|glc|squ|sqp|sqa|nfp|vercel_blob_rw|rnd|fw|esecret|lsv2_(?:pt|sk)|pcsk|sb_secret"
        r"|napi|sgp|bkua|CCIPAT|CLOJARS)_(?=\w{0,80}\d)\w{20,}"
        r"|\b(?:HRKU|CFPAT)-[\w-]{24,}|\baccess_token\$production\$\w{16}\$\w{32}",
    ),
    (
        ("oy2", "cio", "BSA", "ATBB", "ATTA", "EAA", "fc-", "re_", "1//0", "8Q~", "AAAA"),
        r"\boy2[a-z0-9]{43}\b|\bcio[A-Za-z0-9]{32}\b|\bBSA(?=\w{0,28}\d)[\w-]{24,28}\b"
        r"|\bATBB(?=\w{0,32}\d)[A-Za-z0-9]{24,}|\bATTA[0-9a-f]{60,}|\bEAA[A-Za-z0-9]{40,}"
        r"|\bfc-[0-9a-f]{32}\b|\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}|\b1//0[\w-]{40,}"
        r"|\b\w{3}8Q~[\w.~-]{31,40}|\bA{20,}[\w%]{40,}|\bAAAA[\w-]{7}:[\w-]{100,}",
    ),
    (
        ("hvb.", "hvr.", "pat", "v1.0-", "sdk-", "/hooks/catch/", "0/", "1/", "2/"),
        r"\bhv[br]\.[\w-]{60,}|\bpat\w{14}\.[0-9a-f]{64}\b|\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"
        r"|\b(?:pat-(?:na|eu)\d|sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
        r"|(?<=/hooks/catch/)\d+/\w{6,}|\b[012]/\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}\b",
    ),
    (
        ("session", "sid=", "SESS"),
        r"\b(?:session(?:_?id)?|sid|[A-Z]{0,4}SESS(?:ION)?ID)=[\w%.+/=-]{20,}",
    ),
    (("token ",), r"\btoken (?=\w{0,80}\d)\w{35,}"),
    (
        ("-u ",),
        r"(?<=-u )[\w.@-]{1,64}:(?=[\w+/=.!-]{0,80}\d)(?=[\w+/=.!-]{0,80}[A-Za-z])[\w+/=.!-]{8,}",
    ),
    (
        ("TOKEN=", "SECRET=", "PASSWORD=", "PASSWD=", "PWD=", "PASSPHRASE=", "_KEY=", "_PAT="),
        r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PWD|PASSPHRASE|_KEY|_PAT)=[\"']?"
        r"(?=[\w+/=-]{0,80}\d)(?=[\w+/=-]{0,80}[A-Za-z])[\w+/=-]{10,}(?![\w(])",
    ),
    (("M", "N", "O"), r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}"),
    (
        ("hooks.slack.com/", "/webhooks/", ".webhook.office.com/"),
        r"\bhooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{8,}"
        r"|\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[\w-]{8,}"
        r"|(?<=\.webhook\.office\.com/)[\w/@.-]{8,}",
    ),
    (("@",), r"(?<=://)[\w.~%+-]{0,64}:[\w.~!*+%=,^-]{3,256}(?=@)"),
    (
        ("?", "&"),
        r"(?<=[?&])(?:access_|auth_|api_?|X-Amz-)?"
        r"(?:token|key|secret|sig|signature|password|credential|Signature|Credential)"
        r"=[\w.~%+/=:,-]{8,}",
    ),
    (
        ("Bearer ", "Basic "),
        r"(?<=Bearer )(?=\S{0,80}\d)[\w.~+/=-]{8,}|(?<=Basic )(?=\S{0,80}[\d=])[\w+/=-]{12,}",
    ),
)
"""Each with what stands in every text that has one: most texts have none, and are not searched."""
_SIGNS = tuple((n, sign) for n, (signs, _) in enumerate(_SHAPES) for sign in signs)
_NAMES = (
    *("client_secret", "client-secret", "clientsecret", "aws_secret_access_key", "secret_key"),
    *("secretkey", "secret-key", "secret_access_key", "api_key", "api-key", "apikey", "password"),
    *("access_token", "access-token", "accesstoken", "auth_token", "auth-token", "authtoken"),
    *("passwd", "passphrase", "private_key", "private-key", "privatekey", "private_key_id"),
    *("secretaccesskey", "session_token", "authtoken", "security_token"),
)
_NAMED = (
    rf"(?i:{'|'.join(_NAMES)})[\"']?[ \t]{{0,4}}[=:][ \t]{{0,4}}[\"']?"
    r"(?=[\w+/=-]{0,80}\d)(?=[\w+/=-]{0,80}[A-Za-z])[\w+/=-]{16,}"
    rf"|(?i:passw(?:or)?d|passphrase)[\"']?[ \t]{{0,4}}[=:][ \t]{{0,4}}[\"']?"
    r"(?=[\w+/=-]{0,80}\d)(?=[\w+/=-]{0,80}[A-Za-z])[\w+/=-]{10,}(?![\w(.\[])"
)


def compile_shapes(text: str) -> re.Pattern[str] | None:
    """One expression of all shapes that may stand in `text`, None if none may. Compiled with the
    first use: a start waits for nothing."""
    there = {n for n, sign in _SIGNS if sign in text}
    small = text.lower()
    named = ("=" in text or ":" in text) and any(name in small for name in _NAMES)
    return _compile(tuple(sorted(there)), named) if there or named else None


@lru_cache(maxsize=256)
def _compile(shapes: tuple[int, ...], named: bool) -> re.Pattern[str]:
    found = [_SHAPES[n][1] for n in shapes]
    return re.compile("|".join((*found, _NAMED) if named else found))


@cache
def _compile_context() -> re.Pattern[str]:
    return re.compile(_CONTEXT + r"\Z", re.IGNORECASE)


def hide_shapes(text: str, mark: str = MARK) -> str:
    """`text` with a mark in place of what looks like a secret."""
    shapes = compile_shapes(text)
    return shapes.sub(mark, text) if shapes is not None else text


def has_shape(text: str) -> bool:
    """Something in `text` looks like a secret."""
    shapes = compile_shapes(text)
    return shapes is not None and shapes.search(text) is not None


def find_open_end(text: str) -> int:
    """Where the end of `text` begins that more text could make a secret."""
    at, least = len(text), max(0, len(text) - MAX_RUN)
    while at > least and text[at - 1] in _RUN:
        at -= 1
    before = _compile_context().search(text, max(0, at - _LOOKS_BACK), at)
    end = before.start() if before is not None else at
    begins = text.rfind(_BEGIN, max(0, len(text) - MAX_KEY))
    if begins < 0:
        return end
    found = _compile_key().match(text, begins)
    if found is None:
        return min(end, begins) if _KEY_BEGINS.fullmatch(text, begins) else end
    if _KEY_ENDS.search(found[0]) is not None:
        return max(end, found.end())
    return min(end, begins) if _KEY_GOES_ON.fullmatch(text, found.end()) else end


@cache
def _compile_key() -> re.Pattern[str]:
    return re.compile(_KEY)


def spell_secret(value: str) -> Iterator[str]:
    """The forms in which `value` may be written: as it is, backwards, in base64 whatever stands
    before and behind it, in hex, as URLs, JSON and HTML quote it."""
    raw = value.encode(errors="replace")
    forms = [value, value[::-1], raw.hex(), raw.hex().upper(), raw.hex(":"), raw.hex(" ")]
    for before in range(3):
        coded = base64.b64encode(bytes(before) + raw).decode()
        sure = coded[ceil(before * 8 / 6) : (before + len(raw)) * 8 // 6]
        forms += (sure, sure.replace("+", "-").replace("/", "_"))
    quoted = (quote(value, safe=""), quote(value), quote_plus(value))
    everywhere = "".join(f"%{byte:02X}" for byte in raw)
    forms += (*quoted, everywhere, everywhere.lower(), *(quote(one, safe="") for one in quoted))
    forms += (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    forms += (json.dumps(value)[1:-1].replace("/", "\\/"), json.dumps(json.dumps(value))[3:-3])
    forms += ("".join(f"\\u{ord(char):04x}" for char in value if ord(char) < 65_536),)
    forms += (html.escape(value), html.escape(value, quote=False))
    forms += (html.escape(value).replace("&#x27;", "&#39;"),)
    forms += ("".join(f"&#{ord(char)};" for char in value),)
    forms += ("".join(f"&#x{ord(char):x};" for char in value),)
    forms += ("".join(f"\\x{byte:02x}" for byte in raw),)
    yield from (one for one in dict.fromkeys(forms) if len(one) >= SHORTEST)
