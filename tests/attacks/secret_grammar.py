"""Made-up secrets in the shapes of providers, and texts without any. None was ever valid."""

import base64
import random
import re

from hypothesis import strategies as st

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_HEX = "0123456789abcdef"


def _some(letters: str, least: int, most: int | None = None) -> st.SearchStrategy[str]:
    """Text of these letters; with a digit and a letter in it, as the made ones have."""
    return st.text(letters, min_size=least - 2, max_size=(most or least) - 2).map(
        lambda t: f"a{t}7"
    )


def _after(prefix: str, least: int, letters: str = _LETTERS) -> st.SearchStrategy[str]:
    return _some(letters, least, least + 12).map(lambda rest: prefix + rest)


def _is_mixed(text: str) -> bool:
    return text.lower() != text != text.upper()


def _key(kind: str) -> st.SearchStrategy[str]:
    rows = st.lists(st.text(_LETTERS + "+/", min_size=64, max_size=64), min_size=1, max_size=6)
    last = st.text(_LETTERS, min_size=1, max_size=40)
    return st.builds(
        lambda body, end, gap: f"-----BEGIN {kind}-----{gap}{gap.join((*body, end))}{gap}-----END {kind}-----",
        rows, last, st.sampled_from(("\n", "\r\n", " ", "\\n")),
    )  # fmt: skip


_PART = re.compile(r"\{([ahxu])(\d+)\}")
_KINDS = {"a": _LETTERS, "h": _HEX, "x": "0123456789", "u": _LETTERS[:26] + "0123456789"}


def _spell(template: str) -> st.SearchStrategy[str]:
    """`{a20}` for twenty letters and digits, `{h…}` of hex, `{u…}` capitals, `{x…}` digits."""
    parts = [(found[1], int(found[2])) for found in _PART.finditer(template)]
    made = [
        st.text(_KINDS[x], min_size=n, max_size=n) if x == "x" else _some(_KINDS[x], n)
        for x, n in parts
    ]
    plain = _PART.split(template)[::3]
    return st.tuples(*made).map(
        lambda found: plain[0] + "".join(a + b for a, b in zip(found, plain[1:], strict=True))
    )


_SPELT = _LETTERS[26:]
_MORE_KINDS = _KINDS | {"u": _LETTERS[:26] + "234567", "l": _SPELT}
_MARKED = re.compile(r"⟦(.*?)⟧", re.DOTALL)


def spell(case: str, chance: random.Random) -> tuple[str, list[str]]:
    """A case of a list: the text, and the secrets that stand in it. `{a20}`: so many letters and
    digits, `{h…}` of hex, `{u…}` of capitals, `{l…}` of small letters and digits, `{x…}` digits.
    A digit is among the letters and digits, two among twenty and three among thirty-two, and a
    capital and a small letter among eight, as it mostly is where they are drawn at random."""

    def make(found: re.Match[str]) -> str:
        kind, size = found[1], int(found[2])
        letters = chance.choices(_MORE_KINDS[kind], k=size)
        if kind in "ahl":
            places = chance.sample(range(min(size, 20)), min(size, 5))
            digits = 1 + (size >= 20) + (size >= 32)
            for at in places[:digits]:
                letters[at] = chance.choice("23456789")
            if kind == "a" and size >= 8:
                letters[places[digits]] = chance.choice(_LETTERS[:26])
                letters[places[digits + 1]] = chance.choice(_LETTERS[26:52])
        return "".join(letters)

    made = re.sub(r"\{([ahxul])(\d+)\}", make, case)
    return _MARKED.sub(r"\1", made), _MARKED.findall(made)


_TEMPLATES = (
    "glcbt-{a20}", "aws_session_token={a120}", '"SecretAccessKey": "{a40}"', '"private_key_id": "{h40}"',
    "AAAA{a7}:{a140}", "1//0{a60}", "AZURE_CLIENT_SECRET={a40}", "{a3}8Q~{a34}", "AZURE_DEVOPS_EXT_PAT={a52}",
    "TWILIO_AUTH_TOKEN={h32}", "{h32}-{h8}-{h8}", "HRKU-{a60}", "HEROKU_API_KEY=12345678-1234-1234-1234-{h12}",
    "pat{a14}.{h64}", "1/{x16}:{h32}", "EAAA{a60}", "access_token$production${a16}${h32}", "squ_{h40}",
    "SNYK_TOKEN=12345678-1234-1234-1234-{h12}", "glsa_{a32}_{h8}", "glc_{a60}", "DD_API_KEY={h32}", "hvb.{a130}",
    "CLOUDFLARE_API_TOKEN={a40}", "v1.0-{h24}-{h146}", "nfp_{a40}", "vercel_blob_rw_{a40}", "VERCEL_TOKEN={a24}",
    "rnd_{a32}", "//registry.example/:_authToken={a36}", "cio{a32}", "CLOJARS_{h60}", "fw_{a24}", "esecret_{a30}",
    "lsv2_pt_{h32}_{h10}", "pcsk_{a60}", "BSA{a28}", "fc-{h32}", "EAAC{a100}", "AAAAAAAAAAAAAAAAAAAAA{a80}",
    "LINE_CHANNEL_SECRET={h32}", "Authorization: token {a40}", "session={a60}", "sid={a40}", "JSESSIONID={a32}",
    "Server=h;User Id=u;Password={a12}", "password={a12}", '"passwd": "{a12}"', "DB_PWD={a12}", "API_SECRET={a30}",
    'passphrase = "{a16}"', "PGPASSWORD={a12}", "curl -u user:{a16}", "sb_secret_{a40}", "napi_{a60}",
    "UPSTASH_REDIS_REST_TOKEN={a50}", "re_{a8}_{a24}", "pat-na1-12345678-1234-1234-1234-{h12}", "ATBB{a32}",
    "ATTA{h64}", "ops_eyJ{a250}", "bkua_{h40}", "CCIPAT_{a22}_{h40}", "sdk-12345678-1234-1234-1234-{h12}",
    "sgp_{a64}", "ALGOLIA_ADMIN_KEY={h32}", "CFPAT-{a43}", "https://hooks.zapier.com/hooks/catch/123/{a7}",
    "eyJ{a30}.{a40}.{a16}.{a60}.{a22}", "glrt-{a20}", "AUTH0_CLIENT_SECRET={a64}",
)  # fmt: skip

SHAPES: dict[str, st.SearchStrategy[str]] = {
    **{template: _spell(template) for template in _TEMPLATES},
    "telegram": st.builds(lambda n, t: f"{n}:{t}", st.integers(10**7, 10**10 - 1), _some(_LETTERS + "_-", 35)),
    "openai": _after("sk-proj-", 40, _LETTERS + "_-"),
    "openai, old": _after("sk-", 40),
    "anthropic": _after("sk-ant-api03-", 60, _LETTERS + "_-"),
    "openrouter": _after("sk-or-v1-", 48, _HEX),
    "stripe": _after("sk_live_", 24),
    "slack bot": _after("xoxb-", 40, _LETTERS + "-"),
    "slack app": _after("xapp-1-", 40, _LETTERS + "-"),
    "github": _after("ghp_", 36),
    "github, fine": _after("github_pat_", 60, _LETTERS + "_"),
    "gitlab": _after("glpat-", 20, _LETTERS + "_-"),
    "google": _after("AIza", 35, _LETTERS + "_-"),
    "google oauth": _after("ya29.", 60, _LETTERS + "_-"),
    "aws id": st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=16, max_size=16).map(lambda t: "AKIA" + t),
    "aws secret": _some(_LETTERS, 40).map(lambda t: f"aws_secret_access_key = {t}"),
    "jwt": st.builds(lambda a, b, c: f"eyJ{a}.eyJ{b}.{c}", *(_some(_LETTERS + "_-", n, n + 20) for n in (20, 60, 43))),
    "e2b": _after("e2b_", 40, _HEX),
    "hugging face": _after("hf_", 34),
    "groq": _after("gsk_", 52),
    "xai": _after("xai-", 80),
    "tavily": _after("tvly-", 32),
    "npm": _after("npm_", 36),
    "pypi": _after("pypi-", 100, _LETTERS + "_-"),
    "sendgrid": st.builds(lambda a, b: f"SG.{a}.{b}", _some(_LETTERS, 22), _some(_LETTERS, 43)),
    "vault": _after("hvs.", 90),
    "discord bot": st.builds(lambda a, b, c: f"M{a}.{b}.{c}", *(_some(_LETTERS + "_-", n) for n in (24, 6, 38))),
    "slack webhook": _some(_LETTERS, 24).map(lambda t: f"https://hooks.slack.com/services/T00000000/B00000000/{t}"),
    "discord webhook": _some(_LETTERS, 68).map(lambda t: f"https://discord.com/api/webhooks/123456789012345678/{t}"),
    "postgres": _some(_LETTERS + "_-!", 12).map(lambda t: f"postgres://app:{t}@db.example/app"),
    "redis": _some(_LETTERS, 16).map(lambda t: f"redis://:{t}@cache.example:6379/0"),
    "url with a key": _some(_LETTERS, 24).map(lambda t: f"https://api.example.com/v1?api_key={t}"),
    "bearer": _some(_LETTERS + "._-", 32).map(lambda t: f"Authorization: Bearer {t}"),
    "basic": _some(_LETTERS, 24).map(lambda t: f"Authorization: Basic {t}=="),
    "password": _some(_LETTERS, 20).map(lambda t: f"password: {t}"),
    "api key": _some(_LETTERS, 24).map(lambda t: f'"api_key": "{t}"'),
    "twilio": st.text(_HEX, min_size=32, max_size=32).map(lambda t: f"SK{t}"),
    "azure storage": _some(_LETTERS, 86).map(lambda t: f"AccountName=a;AccountKey={t}=="),
    "notion, old": _some(_LETTERS, 43).map(lambda t: f"secret_{t}"),
    "square": _after("sq0atp-", 22, _LETTERS + "_-"),
    "dropbox": _after("sl.", 130, _LETTERS + "_-"),
    "doppler": _after("dp.pt.", 43),
    "new relic": st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=27, max_size=27).map(lambda t: f"NRAK-{t}"),
    "supabase": _after("sbp_", 40, _HEX),
    "fly": _after("fm2_", 80, _LETTERS + "_"),
    "pulumi": _after("pul-", 40, _HEX),
    "terraform": st.builds(lambda a, b: f"{a}.atlasv1.{b}", _some(_LETTERS, 14), _some(_LETTERS, 67)),
    "mailchimp": st.text(_HEX, min_size=32, max_size=32).map(lambda t: f"{t}-us12"),
    "ldap, sha": _some(_LETTERS + "+/", 27, 27).filter(_is_mixed).map(lambda t: f"{{SHA}}{t}="),
    "ldap, ssha": st.builds(lambda a, b: f"{{{a}}}{b}", st.sampled_from(("SSHA", "ssha")), _some(_LETTERS + "+/", 32, 32).filter(_is_mixed)),
    "ldap, ssha512": st.builds(lambda a, b: f"{{{a}}}{b}==", st.sampled_from(("SSHA512", "SSHA384", "SSHA256")), _some(_LETTERS + "+/", 94, 94).filter(_is_mixed)),
    "ldap, smd5": st.builds(lambda a, b: f"{{{a}}}{b}", st.sampled_from(("SMD5", "smd5")), _some(_LETTERS + "+/", 24, 24).filter(_is_mixed)),
    "ldap, crypt": st.builds(lambda a, b: f"{{{a}}}{b}", st.sampled_from(("CRYPT", "crypt")), _some(_LETTERS + "./", 13, 13).filter(_is_mixed)),
    "ldap, encoded": _some(_LETTERS + "+/", 32, 32).map(lambda t: base64.b64encode(f"{{SSHA}}{t}".encode()).decode()),
    "redis, a hash": st.text(_HEX, min_size=64, max_size=64).map(lambda t: f"#{t}"),
    "planetscale": _after("pscale_tkn_", 40, _LETTERS + "_-"),
    "sentry, old": _after("sntryu_", 64, _HEX),
    "rsa key": _key("RSA PRIVATE KEY"),
    "key": _key("PRIVATE KEY"),
    "openssh key": _key("OPENSSH PRIVATE KEY"),
    "ec key": _key("EC PRIVATE KEY"),
}  # fmt: skip

PLAIN = (
    "The sk-learn package is older than the skis.", "Use `git push` and then open https://example.com/a?b=c&d=e.",
    "password = os.environ['DB_PASSWORD']", "Set OPENAI_API_KEY in your environment.", "api_key=os.getenv('KEY')",
    "const token = await getToken();", "Bearer tokens are sent in a header.", "Basic understanding of authentication",
    "mailto:ada@example.com", "http://localhost:8080/path", "ssh://git@example.com/repo.git", "https://ada@example.com/x",
    "12:30:45", "2026-01-01T12:00:00Z", "10.0.0.1:8080", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b", "550e8400-e29b-41d4-a716-446655440000", "key-value stores", "a key: value pair",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "A file that begins with -----BEGIN is in the PEM format, and so is this.", "npm_config_cache=/tmp", "hf_hub_download(repo)",
    "pip install pypi-simple", "the token: a word of a text", "secret: nobody knows", "My password: none of your business",
    "SG is short for Singapore. M and N and O are letters.", "eyJ is how a JWT begins", "xoxo", "ghost_writer", "AKIAs",
    "1234567:short", "foo.bar.baz(qux).quux", "MNOPQRSTUVWXYZ", "discord.com/api/v10/gateway", "whsec is a prefix", "?token=",
    "SKILL and SKU and SK", "secret_santa_2026", "sl.example.org", "dp.pt is a host", "pul-over", "us12 is a datacentre",
    "const password2 = getPassword(user1)", "password = hash_password2(text)", "the passphrase: none", "TOKEN=$TOKEN",
    "API_KEY=your-key-here", "export TOKEN=...", "PASSWORD=changeme", "SECRET_KEY=<a long random text>", "-u 1000:1000",
    "docker run -u node:node app", "session=None", "sid=12", "token is short", "token bucket algorithm for rate limits",
    "the fw_version is 1.2.3", "re_compile and re_match", "pat is a name", "sdk-tools", "ops_team", "1/2 and 3/4",
    "squ_are", "rnd_seed = 42", "glc_lib", "napi_env env, napi_value value", "cioppino", "AAAA record", "AAAAAAAA!",
    "v1.0-beta", "v1.0-rc1", "fc-list", "hvb_x", "pwd && ls", "PWD=/home", "KEY=value", "PRIMARY_KEY=id", "a_KEY=b",
    "ATTACH", "ATBBQ", "EAAB", "sb_secret is a prefix", "access_token$", "BSAFE", "oy2", "HRKU", "CFPAT",
    "Authorization: token", "curl -u user https://example.com", "git push -u origin main", "sort -u a:b",
    "terraform.atlasv1 docs", "md5 9e107d9d372bb6826bd81d3542a419d6-us", "fm2_short", "sq0atp is a prefix",
)  # fmt: skip
"""What looks a little like a secret, and is none."""
