"""Shapes of secrets: the tokens that providers issue.

Each shape except private keys is one run of token characters, perhaps after a word such as
`Bearer`. A stream therefore waits for the end of a run; and, if it contains a command that takes a
password, for the end of the line (command_secrets.py).
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import TypeAlias

from agent_core.guardrails.command_secrets import (
    OPENINGS,
    SIGNS,
    find_command_secrets,
    find_open_command,
)
from agent_core.guardrails.escaped_text import ESCAPE_SIGNS, PlainText, read_layers
from agent_core.guardrails.named.declared_names import (
    ATTRIBUTES,
    ATTRIBUTES_BEGUN,
    PLAIN_NAMES,
    SHORT_NAMES,
    TYPED,
    TYPED_BEGUN,
)
from agent_core.guardrails.named.line_secrets import (
    BEGUN_WORDS,
    LINE_SIGNS,
    MAX_WORDS,
    STATEMENT_SIGNS,
    TELLING,
    find_line_secrets,
    find_open_lines,
)
from agent_core.guardrails.named.named_secrets import MAX_GAP, NAME_SIGNS, find_named_secrets
from agent_core.guardrails.named.secret_names import BEGINNINGS, MAX_NAME, spell_name
from agent_core.guardrails.named.secret_names import SIGNS as NAMES
from agent_core.guardrails.named.secret_statements import leave_statement
from agent_core.guardrails.sign_search import Sign, SignTable, find_sign, has_any, search_ranges
from agent_core.guardrails.token_prefixes import HASHES, PREFIXED
from agent_core.guardrails.wrapped_keys import (
    ENCODED,
    find_encoded,
    find_key_end,
    find_wrapped_keys,
    is_key_open,
)

MARK = "[secret]"
MAX_RUN = 4_096
"""Characters of a run that may still grow into a token."""
MAX_KEY = 16_000
"""Characters of a private key."""
MAX_OPEN = MAX_KEY + 2 * MAX_RUN
"""Characters of which the last may be the beginning of a secret."""
_LOOKS_BACK, _LOOKS_FAR = 64, 800
_ROUNDS = 16
_SHORT = 1_000
"""Characters of a text in which signs are found faster than what they would begin."""
RUN = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+=:~@%?&#!*^,$\\[;\x1b\ufffd"
)
"""Characters of tokens, and of escapes before and between them."""
_BEGIN = "-----BEGIN"
_ALONE = r"(?<![A-Za-z0-9])"
"""Before a prefix that nothing else has: also an underscore, as around a word in Markdown."""
_QUOTE = r"(?:\\{0,2}[\"'])"
_QUOTE_BEGUN = r"\\{0,2}[\"']?"
_SPOKEN = r"(?:is|was|ist|lautet|es|est)"
_KEY_AFTER = r"(?:\"(?:,(?: ?(?:\"(?:key(?:\"(?::(?: ?\"?)?)?)?)?)?)?)?)?"
"""Matches an incomplete `", "key": "`, the second entry of a kaggle.json."""
_CONTEXT = (
    r"(?:(?:authorization[\"']?(?:[ \t]{0,2}[:=][ \t]{0,2}[\"']?(?:[A-Za-z-]{1,20}[ \t])?)?"
    r"|identified(?: by)?|api|(?:app|encryption|signing)[_-]?key"
    r"|(?:set-)?cookie:|auth(?=\")|(?<!\w)(?:[dkpq]|d[pq]|qi)(?=\")|(?:ary|aster)key"
    r"|secretstring|authtok|unseal(?: key(?: \d)?)?"
    r"|Bearer|Basic|token|(?:sha|\d{3}|md5|crypt)\}"
    r"|(?:client[_-]?|aws[_-]?)?(?:secret|passw(?:or)?d)(?:[_-]?access)?(?:[_-]?key(?:_base)?)?"
    r"|api[_ -]?(?:key|secret)|passphrase|pwd|psk|sonar\.login|[a-z]{2,8}pass|-u"
    r"|_(?:pass|auth)|[_-](?:key|pat)"
    r"|(?:access|auth|session|security|refresh|shared|private|vault)[_ -]?(?:key|token)"
    r"|(?:auth|nonce|logged_in)_(?:key|salt)|private[_-]?key(?:_id)?)"
    rf"{_QUOTE_BEGUN}\]?(?:[ \t]\[[\w*]{{0,24}}\]?)?(?:[ \t]{{1,4}}value)?"
    rf"(?:{TYPED_BEGUN}|{ATTRIBUTES_BEGUN})?[ \t]{{0,20}}"
    rf"(?:=>|:=|::|[=:>,]|{_SPOKEN}:?(?=[ \t]))?[ \t]{{0,4}}{_QUOTE_BEGUN}"
    rf"|\||username\"(?::(?: ?(?:\"(?:[\w.-]{{0,30}}{_KEY_AFTER})?)?)?)?)"
)
_RANDOM_CASE = (
    r"(?=[A-Z\d_+/=-]{0,80}[a-z])"
    r"(?=(?:(?:[a-z\d_+/=-]|[A-Z](?![A-Z])){0,80}[A-Z]{2,80}(?![A-Z])){3})"
)
"""Looks ahead to capitals side by side three times, as in hardly a name of a program's."""
_GAP = r"(?:\s|\\{1,8}[nr]){0,40}"
_HEADER = rf"{_GAP}(?:Proc-Type|DEK-Info|Version|Comment): [\w., :-]{{1,80}}(?:\s|\\[nr])"
_KEY = (
    # hide only the key between the lines: a card must show the rest of a command
    r"-----BEGIN (?:[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
    rf"(?:{_HEADER}){{0,4}}+(?:{_GAP}[A-Za-z0-9+/=]{{20,12000}}){{0,400}}+"
    rf"(?:{_GAP}=?[A-Za-z0-9+/=]{{1,76}}(?={_GAP}(?:-----END|=)))?"
    rf"(?:{_GAP}=[A-Za-z0-9+/]{{4}})?(?:{_GAP}-----END [\w ]{{0,40}}-----)?"
)
_KEY_BEGINS = re.compile(r"-----BEGIN [\w ]{0,40}-{0,5}")
_KEY_ENDS = re.compile(r"-----END [\w ]{0,40}-----\Z")
_KEY_GOES_ON = re.compile(r"[A-Za-z0-9+/=\s\\:,. -]{0,120}")
_IN_PGPASS = r"[\w+/=.!@#%^*~?&$,;-]{6,}"
_BEFORE_6 = re.compile(r"\.(?=[\w-]{6}\.[\w-]{27})", re.ASCII)
_BEFORE_8_8 = re.compile(r"-(?=[0-9a-f]{8}-[0-9a-f]{8}\b)", re.ASCII)
_BEFORE_30 = re.compile(r":(?=[A-Za-z0-9_-]{30})")
_BEFORE_32 = re.compile(r"[_-](?=[A-Za-z0-9]{32})")
_GOES_ON = re.compile(
    r"[.!?,;。！？，；]\s{0,4}(?!(?:t(?:y(?:pe?)?)?|v(?:a(?:l(?:ue?)?)?)?)(?:\W|\Z))\w",
    re.IGNORECASE,
)
"""Matches behind a name: nothing after it belongs to it any more."""
_BLANKS = str.maketrans("_-’", "  '")
Shape: TypeAlias = tuple[tuple[Sign, ...], str]
SHAPES: tuple[Shape, ...] = (
    (("-----BEGIN ",), _KEY),
    ((_BEFORE_30,), r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,60}(?!\w)"),
    (
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
        rf"{_ALONE}[spr]k-(?:proj|ant|or|svcacct|admin|live|test|v1|lf|ws)[A-Za-z0-9_-]{{12,}}"
        r"|\b(?:[spr]k-|[sr]k_)[A-Za-z0-9]{20,}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{8,}"
        r"|\bpk_\d{4,12}_[A-Z0-9]{32}\b",
    ),
    (
        ("xox", "xapp-"),
        rf"{_ALONE}(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9%-]{{10,}}|xapp-[A-Za-z0-9-]{{10,}})",
    ),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl"),
        rf"{_ALONE}(?:gh[pousr]_[A-Za-z0-9]{{20,}}|github_pat_\w{{20,}})"
        r"|\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-[\w-]{16,}",
    ),
    (
        ("AIza", "ya29.", "GOCSPX-"),
        rf"{_ALONE}AIza[\w-]{{30,}}|\bya29\.[\w-]{{20,}}|\bGOCSPX-[\w-]{{20,}}",
    ),
    (
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        rf"{_ALONE}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    ),
    (
        ("eyJ",),
        r"(?<!pk\.)\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}|\bops_eyJ[\w-]{80,}"
        r"|\beyJrIjoi[\w-]{40,}={0,2}",
    ),
    (
        (
            *("e2b_", "hf_", "gsk_", "r8_", "npm_", "rubygems_", "figd_", "ntn_", "whsec_"),
            *(
                "lin_api_",
                "lin_oauth_",
                "dop_v1_",
                "doo_v1_",
                "dor_v1_",
                "shpat_",
                "shpca_",
                "shppa_",
                "shpss_",
            ),
        ),
        rf"{_ALONE}(?:e2b|hf|gsk|r8|npm|rubygems|figd|ntn|whsec|lin_(?:api|oauth)|do[opr]_v1"
        r"|shp(?:at|ca|pa|ss))_[\w+/-]{20,}={0,2}",
    ),
    (
        (
            *("xai", "pplx", "tvly", "nvapi", "xkeysib", "PMAK", "pypi", "sntrys"),
            *("dckr_", "ATATT", "ATCTT", "AGE-SECRET-KEY-1"),
        ),
        r"\b(?:xai|pplx|tvly|nvapi|xkeysib|PMAK|pypi|sntrys|dckr_[po]at|ATATT|ATCTT)[-_]?"
        r"(?=[\w=-]{0,80}\d)[\w=-]{24,}"
        r"|\bAGE-SECRET-KEY-1[0-9A-Z]{40,}",
    ),
    (
        ("SG.", "hvs.", "dapi", "dkea", "key-"),
        r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhvs\.[\w-]{20,}|\bd(?:api|kea)[0-9a-f]{32}\b"
        r"|\bkey-[0-9a-f]{32}\b",
    ),
    (("SK", "AC", "-us"), r"\b(?:SK|AC)[0-9a-f]{32}\b|\b[0-9a-f]{32}-us\d{1,2}\b"),
    ((_BEFORE_8_8,), r"\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b"),
    (
        ("AccountKey=", "secret_", ".atlasv1.", "sl."),
        r"(?<=AccountKey=)[\w+/]{40,}={0,2}|\bsecret_[A-Za-z0-9]{40,}"
        r"|\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}|\bsl\.(?:u\.)?[\w-]{100,}",
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
        r"\b(?:glsa|glc|squ|sqp|sqa|nfp|vercel_blob_rw|rnd|fw|esecret|lsv2_(?:pt|sk)|pcsk"
        r"|napi|sgp|bkua|CCIPAT|CLOJARS)_(?=\w{0,80}\d)\w{20,}"
        r"|\bsb_secret_[\w-]{20,}|\b(?:HRKU|CFPAT)-[\w-]{24,}|\baccess_token\$production\$\w{16}\$\w{32}",
    ),
    (
        ("oy2", "cio", "BSA", "ATBB", "ATTA", "EAA", "fc-", "re_", "1//0", "8Q~", "AAAA"),
        r"\boy2[a-z0-9]{43}\b|\bcio[A-Za-z0-9]{32}\b|\bBSA(?=\w{0,28}\d)[\w-]{24,28}\b"
        r"|\bATBB(?=\w{0,32}\d)[A-Za-z0-9]{24,}|\bATTA[0-9a-f]{60,}"
        r"|\bEAA(?<!SHA256:EAA)(?<!sha\d{3}-EAA)[A-Za-z0-9]{40,}|\bEAAA(?=[\w-]{0,60}\d)[\w-]{58,62}(?![\w-])"
        r"|\bfc-[0-9a-f]{32}\b|\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}|\b1//0[\w-]{40,}"
        r"|\b\w{3}8Q~[\w.~-]{31,40}|\bA{20,}[\w%]{40,}|\bAAAA[\w-]{7}:[\w-]{100,}",
    ),
    (
        ("hvb.", "hvr.", "pat", "v1.0-", "sdk-", "mob-", "/hooks/catch/", "0/", "1/", "2/"),
        r"\bhv[br]\.[\w-]{60,}|\bpat\w{14}\.[0-9a-f]{64}\b|\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"
        r"|\b(?:pat-(?:na|eu)\d|sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
        r"|(?<=/hooks/catch/)\d+/\w{6,}|\b[012]/\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}\b",
    ),
    (
        ("session", "sid=", "SESS"),
        r"(?:\b(?:session(?:_?id)?|sid|[A-Z]{0,4}SESS(?:ION)?ID)|(?<=_)session_?id)="
        r"(?=[\w%.+/=-]{0,80}\d)[\w%.+/=-]{20,}",
    ),
    (("token ",), r"\btoken (?=\w{0,80}\d)\w{35,}"),
    (
        ("-u ",),
        r"(?<=-u )[\w.@-]{1,64}:(?=[\w+/=.!-]{0,80}\d)(?=[\w+/=.!-]{0,80}[A-Za-z])[\w+/=.!-]{8,}",
    ),
    (
        (
            *("TOKEN=", "SECRET=", "PASSWORD=", "PASSWD=", "PWD=", "PASSPHRASE=", "_KEY=", "_PAT="),
            "_SALT=",
        ),
        r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PWD(?!=[\"']?/)|PASSPHRASE|_KEY|_PAT|_SALT)=[\"']?"
        r"(?=[\w+/=-]{0,80}\d)(?=[\w+/=-]{0,80}[A-Za-z])[\w+/=-]{8,}(?![\w(])",
    ),
    (
        ("key_", "ak-", "as-", "rpa_", "hcai", "wandb_v1_", "pa-", "/with/key/", "secret_"),
        r"\bkey_[0-9a-f]{64}\b|\b(?:rpa_[A-Z0-9]|hcai[ck]_[a-z0-9]|wandb_v1_\w)[\w-]{40,}"
        r"|\ba[ks]-(?=\w{0,22}\d)(?=\w{0,22}[A-Z])[A-Za-z0-9]{22}\b"
        r"|\bpa-(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Z])[\w-]{40,}|(?<=/with/key/)[\w-]{16,}"
        r"|\bsecret_[\w-]{1,40}_[0-9a-f]{32}\.[A-Za-z0-9]{32}",
    ),
    (
        (":543", ":6432:", ":*:*:", "KEY=base64:"),
        rf"(?:(?<=:543[0-9]:)|(?<=:6432:))[\w*-]{{1,40}}:[\w*-]{{1,40}}:{_IN_PGPASS}"
        rf"|(?<=:\*:\*:)[\w*-]{{1,40}}:{_IN_PGPASS}|(?<=KEY=base64:)[\w+/=]{{24,}}",
    ),
    (
        (_BEFORE_32,),
        r"(?<![\w/+.-])(?<!sha(?:256|384|512)[=:])(?!pk_|phc_|pub|prj_|sha\d)"
        r"[a-z][a-z0-9]{1,11}(?:[_-][a-z]{2,8}){0,2}[_-]"
        r"(?=\w{0,80}\d)(?=\w{0,80}[a-z])(?=\w{0,80}[A-Z])[A-Za-z0-9]{32,}"
        r"(?:[_-]\w{4,})?(?![\w(])",
    ),
    (("syt_",), r"\bsyt_\w{4,40}_\w{20}_\w{6}\b"),
    (
        ('auth":', 'd":', 'k":', 'p":', 'q":', 'qi":'),
        r"(?:(?<=auth\": \")|(?<=auth\":\"))[\w+/]{16,}={0,2}(?=\")"
        r"|(?:(?<=\b[dkpq]\": \")|(?<=\b[dkpq]\":\")|(?<=\b[dq][pqi]\": \")|(?<=\b[dq][pqi]\":\"))"
        r"(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Z])"
        r"[\w-]{43,}(?=\")",
    ),
    (
        ("uthorization", "UTHORIZATION"),
        r"(?i:authorization)[\"']?[ \t]{0,2}[:=][ \t]{0,2}[\"']?[A-Za-z-]{1,20}[ \t]"
        r"(?=\S{0,80}[\d=])[\w.~+/=:-]{16,}"
        r"|(?i:authorization)[\"']?[ \t]{0,2}[:=][ \t]{0,2}[\"']?"
        rf"(?=(?:[A-Za-z_+/=-]{{0,80}}\d){{3}}|{_RANDOM_CASE}[A-Za-z_+/=-]{{0,80}}\d)"
        r"(?=[\w+/=-]{0,80}[A-Za-z])[\w+/=-]{24,}(?![\w(.\[:])",
    ),
    (
        ("ookie:",),
        r"(?<=ookie: )(?!_g)[\w.-]{1,40}=(?=[\w%.+/=-]{0,80}\d)(?=[\w%.+/=-]{0,80}[A-Za-z])"
        r"[\w%.+/=-]{24,}",
    ),
    (("live_",), r"\blive_(?=[\w-]{0,80}\d)[\w-]{35,}"),
    (("_mmk",), r"\b[A-Za-z0-9]{6}_\w{29}_mmk\b"),
    (("00",), r"\b00(?=[\w-]{0,40}[a-z])(?=[\w-]{0,40}[A-Z])[\w-]{40}(?![\w-])"),
    (
        ("pnu_", "phx_", "tfp_", "y0_", "rdme_", "xsmtpsib-", "shippo_", "tskey-", "AQVN", "ABSK"),
        r"\b(?:pnu|phx|tfp|y0)_(?=[\w-]{0,80}\d)[\w-]{36,}|\brdme_[a-z0-9]{60,}"
        r"|\bxsmtpsib-[0-9a-f]{64}-\w{16}|\bshippo_(?:live|test)_[0-9a-f]{40}\b"
        r"|\btskey-[a-z]{3,12}-\w{8,}-\w{16,}|\bAQVN(?=[\w-]{0,40}\d)[\w-]{35,38}"
        r"|\bABSK[\w+/]{100,}={0,2}",
    ),
    (
        ("A3-", "t1.", "amzn1.oa2-cs.", "pat.", "sat."),
        r"\bA3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}\b|\bamzn1\.oa2-cs\.v1\.[0-9a-f]{64}"
        r"|\bt1\.[\w-]{20,}={0,2}\.[\w-]{80,}={0,2}"
        r"|\b[ps]at\.[\w-]{20,24}\.[0-9a-f]{24}\.\w{20}",
    ),
    (
        (
            *("$1$", "$5$", "$6$", "$7$", "$8$", "$9$", "$y$", "$2a$", "$2b$", "$2x$", "$2y$"),
            *("$apr1$", "$argon2", "$scrypt$"),
        ),
        r"\$(?:[15-9y]|2[abxy]|apr1|argon2id?|scrypt)\$[\w./+=,$-]{20,200}",
    ),
    ((_BEFORE_6,), r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}"),
    (
        ("hooks.slack.com/", "/webhooks/", ".webhook.office.com/", "outlook.office.com/webhook/"),
        r"\bhooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{8,}"
        r"|\bdiscord(?:app)?\.com/api/(?:v\d{1,4}/)?webhooks/\d+/[\w-]{8,}"
        r"|(?<=\.webhook\.office\.com/)[\w/@.-]{8,}"
        r"|(?<=outlook\.office\.com/webhook/)[\w/@.-]{8,}",
    ),
    (
        ("://",),
        r"(?<=://)[\w.~%+=,-]{0,64}:[\w.~!*+%=,^-]{3,256}(?=@)"
        r"|(?<=://)(?=[A-Za-z]{0,80}\d)(?=\d{0,80}[A-Za-z])[A-Za-z0-9]{40,128}(?=@)",
    ),
    (
        ("?", "&"),
        r"(?<=[?&])(?:(?:access|auth|id|refresh|session|security|reset|invite|client|bot)[_-]|api_?"
        r"|X-(?:Amz|Goog)-(?:Security-)?)?"
        r"(?:token|key|secret|sig|signature|password|credential|Token|Signature|Credential)"
        r"=[\w.~%+/=:,-]{8,}",
    ),
    *PREFIXED,
    (
        ("Bearer ", "Basic "),
        r"(?<=Bearer )(?=\S{0,80}\d)[\w.~+/=-]{8,}|(?<=Basic )(?=\S{0,80}[\d=])[\w+/=-]{12,}",
    ),
)
"""The shapes: signs, of which each secret has one or follows it, and its expression."""
_TEXT_SIGNS = SignTable(
    (n, s) for n, (signs, _) in enumerate(SHAPES) for s in signs if isinstance(s, str)
)
_PATTERN_SIGNS = tuple(
    (n, s) for n, (signs, _) in enumerate(SHAPES) for s in signs if isinstance(s, re.Pattern)
)
_BACK: dict[Sign, int] = {
    **dict.fromkeys(("uthorization", "UTHORIZATION", "ak_", "prv"), 1),
    **dict.fromkeys((".local.", "8Q~", "sk_", "eyJ", "SESS"), 4),
    **dict.fromkeys(("ALTAK-", _BEFORE_30, ".atlasv1."), 14),
    **dict.fromkeys(("NRAL", "-us", ":fx", "_mmk", "/webhooks/", '"key'), 40),
    **dict.fromkeys((_BEFORE_6, _BEFORE_8_8, _BEFORE_32), 32),
    **dict.fromkeys(("AzCa", "AzSe", "AzFu", "AZDO", "APIM", "ACDb", "AIoT"), 84),
    **dict.fromkeys(("@tcp(", "@unix(", "@/"), 98),
    **dict.fromkeys((HASHES,), 11),
    **dict.fromkeys(("+ASb", "+ARm", "+AMC", "JQQJ99"), 84),
}
"""Maximum characters of a secret before its sign. Those not named begin at the sign, or up to
`_AFTER` characters behind it."""
_AFTER = 2
_VALUE = (
    rf"(?:{_QUOTE}?\]?(?:[ \t]\[[\w*]{{0,24}}\])?(?:[ \t]{{1,4}}value)?{TYPED}?"
    rf"[ \t]{{0,4}}(?:=>|:=|::(?=[ \t])|[=:>])|{ATTRIBUTES}>|{_QUOTE},"
    rf"|[ \t]{{1,4}}(?=[\"']))[ \t]{{0,4}}{_QUOTE}?"
)
_MIXED = r"(?=[\w+/=-]{0,80}\d)(?=[\w+/=-]{0,80}[A-Za-z])"
_NUMBERED = (
    r"(?=(?:[A-Za-z_+/=-]{0,80}\d){2})(?=[\w+/=-]{0,80}[A-Za-z])"
    r"(?=(?:[A-Za-z_+/=-]{0,80}\d){3}|[A-Z\d_+/=-]{0,80}[a-z][\w+/=-]{0,80}[A-Z]|[A-Z])"
)
_SAID = (
    rf"[ \t]{{1,20}}(?:{_SPOKEN}:?[ \t]{{1,4}})?{_QUOTE}?"
    r"(?=[\w+/=-]{0,80}\d)(?=[\w+/=-]{0,80}[a-z])(?=[\w+/=-]{0,80}[A-Z])"
)
_CHOSEN = r"(?=[^\s\"'\\]{0,80}\d)(?=[^\s\"'\\]{0,80}[A-Za-z])[\w+/=.!@#%^*~?:,-]{8,200}"
"""A password chosen by a person, with special characters if quotes tell its extent."""
_SIGNS_TOO = r"(?:[!@#^*~$]{1,8}[\w+/=-]{1,200}){0,20}"
"""Characters after a special one that still belong to the secret."""
_BROAD_NAMES = ("token", "secret")
"""Names that also occur with other words: their values need three digits."""
_NO_BROAD = (
    r"(?<![Pp]age)(?<![Pp]age_)(?<![Nn]ext)(?<![Nn]ext_)(?<![Ss]ync)(?<![Ss]ync_)(?<!ontinuation)"
)


def find_shape(shape: Shape, text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each secret of this shape."""
    signs, expression = shape
    ranges = [
        (at - _BACK.get(sign, 0), end + _AFTER)
        for sign in signs
        for at, end in find_sign(sign, text)
    ]
    if ranges:
        yield from (one.span() for one in search_ranges(_compile(expression), text, ranges))


def _find_tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each secret that has a shape, by shapes."""
    there = _TEXT_SIGNS.find(text)
    there.update(n for n, sign in _PATTERN_SIGNS if sign.search(text))
    for n in sorted(there):
        yield from find_shape(SHAPES[n], text)
    small = _lower_letters(text)
    if names := tuple(name for name in (*PLAIN_NAMES, *_BROAD_NAMES) if name in small):
        ranges = [(at, at) for name in names for at, _ in find_sign(name, small)]
        yield from (one.span() for one in search_ranges(_compile_names(names), text, ranges))
    if has_any(NAME_SIGNS, small):
        yield from find_named_secrets(text, small)


def _lower_letters(text: str) -> str:
    """Return `text` in small letters, each at its place."""
    return text.replace("\u0130", "I").lower()


@cache
def _compile(expression: str) -> re.Pattern[str]:
    """Compile at the first use, so that the start is not delayed."""
    return re.compile(expression, re.ASCII)


@lru_cache(maxsize=256)
def _compile_names(names: tuple[str, ...]) -> re.Pattern[str]:
    found = []
    short = [name for name in names if name in SHORT_NAMES]
    if short:  # before the others, which end at a sign
        found.append(
            rf"(?i:{'|'.join(short)})"
            rf"(?:{_VALUE}(?<=[\"']){_CHOSEN}(?={_QUOTE})"
            rf"|(?:{_VALUE}{_MIXED}|{_SAID})[\w+/=-]{{10,}}(?![\w(\[]|\.\S){_SIGNS_TOO})"
        )
    if sure := [name for name in names if name not in _BROAD_NAMES]:
        found.append(
            rf"(?i:{'|'.join(sure)})(?:{_VALUE}{_MIXED}|{_SAID})[\w+/=-]{{16,}}{_SIGNS_TOO}"
        )
    if broad := [name for name in names if name in _BROAD_NAMES]:
        found.append(
            rf"{_NO_BROAD}(?i:{'|'.join(broad)}){_VALUE}(?:{_NUMBERED}[\w+/=-]{{20,}}(?![\w(.\[])"
            rf"|(?<=[\"']){_MIXED}[A-Za-z0-9]{{20,}}(?={_QUOTE}))"
        )
    return re.compile("|".join(found), re.ASCII)


@cache
def _compile_context() -> re.Pattern[str]:
    return re.compile(_CONTEXT + r"\Z", re.IGNORECASE | re.ASCII)


def hide_shapes(text: str, mark: str = MARK) -> str:
    """Replace what looks like a secret by a mark, also behind and between escapes."""
    spans = [*_find_shapes(text), *_find_lines(text)]
    for layer in _read_layers(text):
        spans += (layer.find_origin(*span) for span in _find_shapes(layer.text))
    shown: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start >= done:
            shown += (text[done:start], mark)
        done = max(done, end)
    return "".join((*shown, text[done:])) if shown else text


def _find_shapes(text: str) -> list[tuple[int, int]]:
    found = find_command_secrets(text) if has_any(SIGNS, text) else []
    found += _find_tokens(text)
    if _BEGIN in text:
        found += find_wrapped_keys(text)
    return found


def _find_lines(text: str) -> list[tuple[int, int]]:
    tells = ("\n" in text and TELLING.search(text)) or has_any(STATEMENT_SIGNS, text)
    return list(find_line_secrets(text)) if tells else []


def has_shape(text: str) -> bool:
    """Return True if something in `text` looks like a secret."""
    return (
        bool(_find_lines(text))
        or _has_plain(text)
        or any(_has_plain(layer.text) for layer in _read_layers(text))
    )


def _read_layers(text: str) -> Iterable[PlainText]:
    return read_layers(text) if has_any(ESCAPE_SIGNS, text) else ()


def _has_plain(text: str) -> bool:
    if next(_find_tokens(text), None) is not None:
        return True
    return has_any(SIGNS, text) and bool(find_command_secrets(text))


def find_open_end(text: str) -> int:
    """Return where the end of `text` begins that more text could make a secret. Only its last
    MAX_OPEN characters are read."""
    before = max(0, len(text) - MAX_OPEN)
    last = text[before:]
    end = _find_open_end(last)
    return before + (leave_statement(last, end) if has_any(STATEMENT_SIGNS, last) else end)


def _find_open_end(text: str) -> int:
    lines = find_open_lines(text) if has_any(LINE_SIGNS, text) else len(text)
    if begun := BEGUN_WORDS.search(text, max(0, len(text) - MAX_WORDS)):
        lines = min(lines, begun.start())
    encoded = find_encoded(text) if has_any(ENCODED, text) else len(text)
    end = _find_open_word(text, min(lines, encoded))
    for _ in range(_ROUNDS):  # what is before a name may itself be behind one, or in a command
        named = _find_named(text, end)
        if named == end:
            break
        end = _find_open_word(text, named)
    begins = text.rfind(_BEGIN, max(0, len(text) - MAX_KEY))
    if begins < 0:
        return end
    end = _leave_key(text, end)
    if is_key_open(text, begins):
        return min(end, begins)
    found = _compile_key().match(text, begins)
    if found is None:
        return min(end, begins) if _KEY_BEGINS.fullmatch(text, begins) else end
    if _KEY_ENDS.search(found[0]) is not None:
        return max(end, found.end()) if lines >= begins else end
    return min(end, begins) if _KEY_GOES_ON.fullmatch(text, found.end()) else end


def _find_open_word(text: str, end: int) -> int:
    """Return where the command, the run or the word before a run begins that is open there."""
    text = text[:end]
    may_open = len(text) > _SHORT or has_any(OPENINGS, text)
    at = _find_run(text, find_open_command(text) if may_open else len(text))
    before = _compile_context().search(text, max(0, at - _LOOKS_BACK), at)
    return _find_run(text, before.start()) if before is not None else at


def _find_named(text: str, at: int) -> int:
    """Return where a name begins whose value may begin at `at`, also one with escapes."""
    if text[at - 1 : at] in RUN:  # within a run that is too long for a secret
        return at
    first = _find_open_name(text, at)
    before = max(0, at - _LOOKS_FAR)
    for layer in _read_layers(text[before:at]):
        begin = _find_open_name(layer.text, len(layer.text))
        if begin < len(layer.text):
            first = min(first, before + layer.find_origin(begin, begin + 1)[0])
    return first


def _find_open_name(text: str, at: int) -> int:
    """Return where a name begins whose value may begin at `at`, otherwise `at`."""
    begin = max(0, at - MAX_GAP - MAX_NAME)
    tail = text[begin:at]
    small = _lower_letters(tail)
    if has_any(NAME_SIGNS, small):
        for found in _compile_all_names().finditer(tail):
            behind = tail[found.end() :]
            if behind.count("\n") < 2 and not _GOES_ON.search(behind):
                return _take_letter(text, begin + found.start())
    small = small[-MAX_NAME:].translate(_BLANKS)
    for n in range(len(small), 0, -1):
        if small[-n:] in BEGINNINGS:
            return _take_letter(text, at - n)
    return at


def _take_letter(text: str, begin: int) -> int:
    """Return `begin`, or the place of the letter before it, which is a part of the word."""
    return begin - 1 if begin and text[begin - 1].isalpha() else begin


def _leave_key(text: str, at: int) -> int:
    """Return `at`, or where the private key begins that it is within: what opens a command may
    occur by chance in a key with others on its line."""
    begins = text.rfind(_BEGIN, max(0, at - MAX_KEY), at)
    if begins < 0:
        return at
    found = _compile_key().match(text, begins)
    ends = found.end() if found is not None and found.end() > at else find_key_end(text, begins)
    return begins if ends > at else at


def _find_run(text: str, end: int) -> int:
    """Return the start of the run of token characters that ends there. The word before a secret may
    be the end of another one."""
    least = max(0, end - MAX_RUN)
    while end > least and text[end - 1] in RUN:
        end -= 1
    return end


@cache
def _compile_key() -> re.Pattern[str]:
    return re.compile(_KEY, re.ASCII)


@cache
def _compile_all_names() -> re.Pattern[str]:
    return re.compile("|".join(map(spell_name, NAMES)), re.ASCII)
