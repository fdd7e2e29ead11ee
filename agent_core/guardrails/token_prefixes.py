"""Shapes of tokens that their prefix, or a mark inside, assigns to a provider.

Sources: the providers' documentation of their keys, and the output of their tools. Each row has
what occurs in every text with such a token, and an expression of linear time; values that are
public by design (a publishable key, a client's id) are left out.
"""

import re

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_MIXED = r"(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])"
_DRAWN = r"(?=[\w-]{0,30}\d)(?=[\w-]{0,30}[A-Z])(?=[\w-]{0,30}[a-z])"
_CASES = r"(?=[\w-]{0,19}[A-Z])(?=[\w-]{0,19}[a-z])"

_DOT, _COLON = re.compile(r"\.(?=[\w-]{16})", re.ASCII), re.compile(":(?=[0-9a-f]{32})")

_UNSEAL = re.compile(r"Unseal Key \d: ")
HASHES = re.compile(":(?=[0-9A-Fa-f]{32}:[0-9A-Fa-f]{32}:)")
_CHOSEN = r"(?=[^\s@]{0,64}\d)(?=[^\s@]{0,64}[A-Za-z])[^\s:@/'\"()]{6,64}"

_ADDRESS = rf"(?:{_UUID}|{_MIXED}[A-Za-z0-9]{{20,}})(?![A-Za-z0-9]|\.[a-z])"
"""The end of an address whose knowledge is enough to call it; a file's name goes on."""

_QUADS = r"(?:[A-Za-z0-9+/]{4})"
_SALTED = (
    r"(?:(?<=SSHA\})|(?<=SSHA256\})|(?<=SSHA384\})|(?<=SSHA512\})|(?<=SMD5\})"
    r"|(?<=ssha\})|(?<=smd5\}))"
)
_HASHED = r"(?:(?<=SHA\})|(?<=SHA256\})|(?<=SHA512\})|(?<=MD5\}))"
_CASED = r"(?=[\w+/.]{0,80}[a-z])(?=[\w+/.]{0,80}[A-Z])"

PREFIXED: tuple[tuple[tuple[str | re.Pattern[str], ...], str], ...] = (
    # Addresses of hooks: Make, Lark, Mattermost, Rocket.Chat, Webex, Netlify, Cloudflare, …
    (
        ("hook/", "hooks/", "/incoming/", "/heartbeat/"),
        rf"(?:(?<=hook/)|(?<=hooks/)|(?<=/incoming/)|(?<=/heartbeat/))(?:[\w-]{{1,40}}/){{0,2}}{_ADDRESS}",
    ),
    (
        (".make.com/", "integromat.com/", "hc-ping.com/", "/integration/", "slack-gov.com/"),
        rf"(?:(?<=\.make\.com/)|(?<=integromat\.com/)|(?<=hc-ping\.com/)|(?<=/integration/)){_ADDRESS}"
        r"|(?<=slack-gov\.com/)(?:services|workflows|triggers)/[\w/-]{8,}",
    ),
    # a private calendar, a deployment, GitLab's and OpenWeather's keys in a query
    (
        ("/private-", "/integrations/deploy/", "private_token=", "appid="),
        r"(?<=/private-)[0-9a-f]{32}\b|(?<=/integrations/deploy/)prj_\w{20,}/\w{8,}"
        r"|(?<=private_token=)[\w-]{16,}|(?<=appid=)[0-9a-f]{32}\b",
    ),
    # Kaggle: a token, and the key in kaggle.json next to the user's name
    (
        ("KGAT_", '"key'),
        r"\bKGAT_[A-Za-z0-9]{24,}"
        r"|(?<=username\":\")[\w.-]{1,30}\",\"key\":\"[0-9a-f]{32}\b"
        r"|(?<=username\": \")[\w.-]{1,30}\", ?\"key\": \"[0-9a-f]{32}\b",
    ),
    # private keys in base64, as in kubeconfig and in secrets of Kubernetes
    (
        ("LS0tLS1CRUdJTi",),
        r"\bLS0tLS1CRUdJTi(?:BQUklWQVRFIEtFW|BSU0EgUFJJVkFURSBLRV|BFQyBQUklWQVRFIEtFW"
        r"|BEU0EgUFJJVkFURSBLRV|BPUEVOU1NIIFBSSVZBVEUgS0VZ|BFTkNSWVBURUQgUFJJVkFURSBLRV)"
        r"[\w+/]{40,}={0,2}",
    ),
    # Convex: deployment|key, as base64 of JSON or as hex
    (("eyJ2MiI6", "|01"), r"\beyJ2MiI6[\w+/-]{16,}={0,2}|(?<=\|)01[0-9a-f]{72,94}\b"),
    # Composio: of a project, an organization or a person
    (("ak_",), rf"\bo?ak_{_CASES}[\w-]{{20}}(?![\w-])|\buak_{_CASES}[\w-]{{43}}(?![\w-])"),
    (
        ("sk-", "sk_", "rk_", "ek_"),
        r"\bsk-(?:helicone|None|service)-[\w-]{20,}|\b[ers]k_[a-z]{2,8}_(?=\w{0,40}\d)\w{20,}"
        r"|\bhl_sk_[0-9a-f]{32,}",
    ),
    (
        ("tr_", "dtn_", "bb_live_", "pdl_", "unkey_", "pylf_v", "cal_live_", "nyk_v0_", "retool_"),
        rf"\btr_(?:dev|stg|prod|preview|pat)_{_MIXED}\w{{20,}}|\bdtn_[0-9a-f]{{40,}}"
        rf"|\bbb_live_{_MIXED}[\w-]{{20,}}|\bpdl_(?:live|sdbx)_apikey_\w{{26}}_\w{{22}}_\w{{3}}\b"
        rf"|\b(?:unkey|retool)_{_DRAWN}[A-Za-z0-9]{{20,}}|\bpylf_v\d_(?:us|eu)_\w{{30,}}"
        rf"|\bcal_live_[0-9a-f]{{32}}\b|\bnyk_v0_\w{{40,}}",
    ),
    (
        ("aio_", "lip_", "lio_", "sm_", "pl_", "aph0_", "pb_", "mxb_", "up_", "eo_", "chpt_"),
        rf"\b(?:aio|lip|lio|pb|eo|up|aph0)_{_DRAWN}[A-Za-z0-9]{{20,}}|\bsm_[ap]at_{_MIXED}\w{{16}}\b"
        r"|\bpl_[0-9a-f]{32}\b|\bmxb_(?=[a-z]{0,40}\d)[a-z0-9]{40,}|\bchpt_[0-9a-z]{12,16}\b",
    ),
    (
        ("xaat-", "xapt-", "api-", "RGAPI-", "amzn.mws.", "pat-ap", ":fx", "BBDC-", "CAP-", "API-"),
        rf"\b(?:xa[ap]t-|api-|RGAPI-|amzn\.mws\.|pat-ap\d-){_UUID}\b|\b{_UUID}:fx\b"
        rf"|\b(?:BBDC|CAP)-{_DRAWN}[\w+/-]{{32,}}"
        r"|\bAPI-(?=[A-Z]{0,26}\d)(?=\d{0,26}[A-Z])[A-Z0-9]{25,36}\b",
    ),
    (
        ("bkat_", "bkct_", "bkpt_", "bkot_", "bkjt_", "CCIPRJ_", "sktsec_", "zpka_", "dose"),
        r"\bbk(?:at|ct|pt|ot|jt)_[\w-]{30,}|\bCCIPRJ_\w{22}_[0-9a-f]{40}\b"
        r"|\bsktsec_[\w-]{30,}|\bzpka_[0-9a-f]{32}(?:_[0-9a-f]{8})?\b|\bdose[0-9a-f]{32}\b",
    ),
    (
        ("signkey-", "xwfp-", "app-", "dataset-", "reftkn:", "AKLT", "ALTAK-", "cflt", "tgp_v1_"),
        rf"\bsignkey-[a-z]{{2,12}}-[0-9a-f]{{32,}}|\bxwfp-[\w-]{{20,}}"
        rf"|\b(?:app|dataset)-{_DRAWN}[A-Za-z0-9]{{24}}\b|\breftkn:\d\d:\d{{10}}:\w{{28}}"
        rf"|\bAKLT{_DRAWN}\w{{32,}}|\bbce-v3/ALTAK-\w{{16,}}/[0-9a-f]{{40}}"
        rf"|\bcflt{_DRAWN}[\w+/]{{50,}}={{0,2}}|\btgp_v1_[\w-]{{40,}}",
    ),
    (
        ("glwt-", "glffct-", "glrtr-", "dp.", "shp", "NRRA-", "NRAA-", "IGQV", "ATOA", "ls__"),
        r"\bgl(?:wt|ffct|rtr)-[\w-]{16,}|\bdp\.(?:scim|audit|said)\.\w{32,}"
        rf"|\bshp(?:ua|tka)?_[0-9a-f]{{32}}\b|\bNR(?:RA|AA)-[0-9a-f]{{27,42}}\b"
        rf"|\bIGQV[\w-]{{80,}}|\bATOA{_DRAWN}[\w=-]{{30,}}|\bls__[0-9a-f]{{32}}\b",
    ),
    (
        ("prv", "b.AAAAAQ", "eyJhIjoi", "up:yeah:", "gAAAAA", "4/0A", "AQ.Ab8"),
        r"\b[xtyzuv]prv[1-9A-HJ-NP-Za-km-z]{100,112}\b|\bb\.AAAAAQ[\w-]{60,}"
        r"|\beyJhIjoi[\w+/-]{60,}={0,2}|\bup:yeah:\w{40,}|\bgAAAAA[\w-]{80,}={0,2}"
        r"|\b4/0A[\w-]{50,}|\bAQ\.Ab8[\w-]{30,}",
    ),
    # a function of Azure's, or what an OAuth server gives for a sign-in
    (
        ("?code=", "&code="),
        rf"(?<=[?&]code=){_DRAWN}[\w-]{{40,200}}(?:={{1,2}}|(?:%3D){{1,2}})?",
    ),
    # New Relic's licence, Mandrill, LinkedIn, Scalingo, Discord's accounts
    (
        ("NRAL", "md-", "WPL_AP1.", "tk-us-", "mfa."),
        r"\b(?:[0-9a-f]{6}|eu01xx|gov01x)[0-9a-f]{30}NRAL\b|\bWPL_AP1\.\w{12,}\.\w{6,}={0,2}"
        rf"|\bmd-{_DRAWN}[\w-]{{22}}(?![\w-])|\btk-us-{_DRAWN}[\w-]{{48}}(?![\w-])"
        rf"|\bmfa\.{_DRAWN}[\w-]{{80,90}}(?![\w-])",
    ),
    (("KEY0",), r"\bKEY0[0-9A-Z]{31}_[A-Za-z0-9]{22}\b"),
    # Azure keys, which have a marker and a checksum after the random part
    (
        ("AzCa", "AzSe", "AZDO", "JQQJ99", "APIM", "ACDb", "AIoT", "+ASb", "+ARm", "+AMC", "AzFu"),
        r"\b[\w+/]{22,74}Az(?:Ca|Se|Fu)[\w+/]{5,}={0,2}|\b[\w+/]{43,84}(?:AZDO|APIM)\w{4}\b"
        r"|\b[\w+/]{42,76}(?:ACDb|AIoT|\+ASb|\+ARm|\+AMC)[\w+/]{5,}={0,2}"
        r"|\b\w{52}JQQJ99[A-Z]\w{20,}",
    ),
    # A variable that is set without a sign, as by `setx`, fish and old Dockerfiles
    (
        ("TOKEN ", "SECRET ", "_KEY "),
        r"(?:TOKEN|SECRET|_KEY)[ \t]{1,4}(?=\w{0,80}\d)(?=\w{0,80}[a-z])(?=\w{0,80}[A-Z])"
        r"\w{20,}(?![\w(.])",
    ),
    # Names and passwords of databases, without a scheme
    (
        ("@tcp(", "@unix(", "@/", "thin:"),
        rf"(?<![\w/.-])[\w.-]{{1,32}}:{_CHOSEN}(?=@(?:tcp|unix)\()"
        rf"|(?<![\w/.-])[\w.-]{{1,32}}:(?=[^\s@]{{0,64}}[A-Z]){_CHOSEN}(?=@/\w)"
        rf"|(?<=thin:)[\w$#]{{1,30}}/{_CHOSEN}(?=@)",
    ),
    # Hashes of passwords: Samba and Windows, PostgreSQL, Django
    ((HASHES,), r"(?<!\d)\d{1,10}:[0-9A-Fa-f]{32}:[0-9A-Fa-f]{32}(?=:)"),
    (
        ("SCRAM-SHA-", "md5", "pbkdf2"),
        r"\bSCRAM-SHA-\d{1,3}\$\d{3,8}:[\w+/=]{8,}\$[\w+/=]{20,}:[\w+/=]{20,}"
        r"|\bmd5[0-9a-f]{32}(?![\w.])"
        r"|\bpbkdf2[\w:-]{0,12}[$:]\d{3,8}[$:][\w+/=.-]{4,}\$[\w+/=.-]{20,}",
    ),
    # the same in directories (LDAP), also in base64 as LDIF has them, and in Redis' lists of users
    (
        ("SHA}", "SHA256}", "SHA384}", "SHA512}", "MD5}", "CRYPT}", "ssha}", "smd5}", "crypt}"),
        rf"(?:{_SALTED}|{_HASHED}){_CASED}{_QUADS}{{5,}}(?:[A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=)"
        rf"|{_SALTED}{_CASED}(?=[A-Za-z+/]{{0,80}}\d){_QUADS}{{6,}}(?![\w+/=.-])"
        rf"|(?:(?<=CRYPT\}})|(?<=crypt\}})){_CASED}[A-Za-z0-9./]{{13}}(?![\w./-])",
    ),
    (
        ("e1NTSE", "e1NIQ", "e01ENX", "e1NNRDV9", "e0NSWVBUf"),
        r"(?<![\w+/])(?:e1NTSE|e1NIQ|e01ENX|e1NNRDV9|e0NSWVBUf)[A-Za-z0-9+/]{12,}={0,2}",
    ),
    (("#",), r"(?<![\w./+:~@%?&#!*^,$\[;-])#[0-9a-f]{64}(?![\w.-])"),
    # The code of a wireless network, and Docker's passwords in base64
    (
        ("WIFI:", "eyJhdXRocyI6"),
        r"\bWIFI:(?:[TSHR]:[^;\s]{0,64};){0,4}P:[^;\s]{8,64}(?=;)|\beyJhdXRocyI6[\w+/-]{20,}={0,2}",
    ),
    # Azure's keys behind their names in JSON, Vault's in its output
    (
        (*('aryKey": "', 'aryKey":"', 'asterKey": "', 'asterKey":"'), _UNSEAL),
        r"(?:(?<=aryKey\": \")|(?<=aryKey\":\")|(?<=asterKey\": \")|(?<=asterKey\":\"))"
        r"[\w+/]{43,86}={1,2}(?=\")|(?<=Unseal Key \d: )[\w+/]{43,}={0,2}",
    ),
    # Phabricator, Alibaba, Artifactory, Mapbox, Shippo, GitLab's runners, Twitch, …
    (
        ("p8e-", "LTAI", "AKCp", "cmVmd", "4b1d", "duffel_", "dt0", "FLWSECK", "fio-u-"),
        r"\bp8e-[A-Za-z0-9-]{32}|\bLTAI(?=\w{0,24}\d)[A-Za-z0-9]{16,24}\b|\bAKCp[A-Za-z0-9]{60,}"
        r"|\bcmVmd[A-Za-z0-9]{50,}|\b4b1d(?=\w{0,38}[A-Zg-z])[A-Za-z0-9]{38}\b"
        r"|\bduffel_(?:live|test)_[\w-]{40,}|\bdt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,}"
        r"|\bFLWSECK(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?\b|\bfio-u-[\w-]{60,}",
    ),
    (
        ("GR1348941", "EZAK", "EZTK", "dG9rO", "api_org_", "ico-", "NRI", "NRJS-", "sha256~"),
        r"\bGR1348941[\w-]{20}|\bEZ[AT]K[A-Za-z0-9]{50,}|\bdG9rO[\w+/]{40,}={0,2}"
        r"|\bapi_org_(?=\w{0,40}\d)\w{30,}|\bico-[A-Za-z0-9]{32}\b|\bNRI[IQ]-[\w-]{32}"
        r"|\bNRJS-[0-9a-f]{19}\b|\bsha256~[\w-]{43}",
    ),
    (
        ("csk-", "access-", "oauth:", "s.", "nsec1", "AKID", ".local."),
        r"\bcsk-[a-z0-9]{40,}"
        r"|\baccess-(?:production|development|sandbox)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
        r"|\boauth:[a-z0-9]{30}\b|\bnsec1[a-z0-9]{50,}|\bv[1-4]\.local\.[\w-]{60,}"
        r"|\bs\.(?=\w{0,24}\d)(?=\w{0,24}[A-Z])[A-Za-z0-9]{24}\b"
        r"|\bAKID(?=\w{0,32}\d)[A-Za-z0-9]{32}\b",
    ),
    # Two random parts with a separator: found by the separator, which is fast
    (
        (_DOT, _COLON),
        rf"\.(?<=\b[A-Za-z0-9]{{8}}\.){_DRAWN}[A-Za-z0-9]{{32}}\b"
        rf"|\.(?<=\b[0-9a-f]{{32}}\.){_DRAWN}[A-Za-z0-9]{{16}}\b"
        r"|\.(?<=\b1000\.)[0-9a-f]{32}\.[0-9a-f]{32}\b"
        rf"|\.(?<=\b0\.){_UUID}\.[A-Za-z0-9]{{30}}:[\w+/]{{22}}=="
        rf"|:(?<=\b{_UUID}:)[0-9a-f]{{32}}\b|:(?<=\b[0-9a-f]{{24}}:)[0-9a-f]{{64}}\b",
    ),
)
