"""Names and places of secret files, and of files that programs obey unasked."""

import re
import unicodedata
from functools import lru_cache

from agent_core.text import LatePattern, unescape_name

MAX_NAME = 255
"""Characters; no file system takes more."""
_SECRET = LatePattern(
    r"\.env([._~-].*)?|\.netrc|\.pgpass|\.git-credentials|\.npmrc|\.pypirc|\.htpasswd"
    r"|[^-].*\.env"
    r"|id_(rsa|dsa|ecdsa|ed25519)(_sk)?(~|\.(bak|old|orig))?|ssh_host_\w+_key"
    r"|.+\.(pem|p12|p8|pfx|kdbx?|jks|keystore|ppk|ovpn|keychain(-db)?|tfvars(\.json)?)(~|\.(bak|old))?"
    r"|(server|client|tls|ssl|private|privkey|ca|rsa|master|signing|jwt|secret|deploy|encryption"
    r"|api|host|vault|ssh|cert|root|vpn|localhost|age|[\w.]*-[\w.-]*)\.key(~|\.(bak|old))?"
    r"|\.(ssh|aws|gnupg|kube|docker|azure|gcloud)|\.envrc|_netrc|\.my\.cnf|\.s3cfg|\.boto"
    r"|\.(dockercfg|terraformrc|vault-token|credentials)|\.vault_pass(\.txt)?|kubeconfig"
    r"|(.*[-_.])?credentials\.(json|ya?ml|toml|ini|xml|csv|clj)(\.(enc|gpg))?"
    r"|((?!.*(sealed|external|example|sample|template))[^/]*[-_.])?\.?secrets"
    r"(\.(dev|development|prod|production|staging|test|local|enc))?"
    r"\.(json|ya?ml|toml|ini|env)"
    r"|.*service[-_]?account.*\.json|client_secret.*\.json|terraform\.tfstate(\.backup)?"
    r"|application_default_credentials\.json|.*firebase-adminsdk.*\.json|(gcp|gcloud|sa)-key\.json"
    r"|\.(bash|zsh|sh|ksh|mysql|psql|sqlite|python|node_repl|rediscli|irb|dbshell)_history"
    r"|\.?rclone\.conf|\.passwd-s3fs|secring\.gpg|wallet\.dat|wp-config\.php|\.dockerconfigjson"
    r"|(passwords?|secrets?|(api|private)[-_]?keys?|tokens?)\.(txt|csv)|\.dev\.vars(\..*)?|logins\.json|key[34]\.db|\.xauthority"
    r"|\.(secrets?|mylogin\.cnf|gitcredentials|databrickscfg|msmtprc|fetchmailrc|password-store)"
    r"|\.(oci|snowsql|huggingface|kaggle|terraform\.d|electrum|bitcoin|ethereum|rancher)|kaggle\.json"
    r"|cookies\.sqlite|login data|mnemonic\.txt|localsettings\.php|ntds\.dit"
    r"|.+\.(ya?ml|conf|json|pem|crt|der|baseline)\.key|kubeconfig\.ya?ml"
    r"|(ansible-)?\.?vault[-_]pass(word)?(\.txt)?|wg\d+\.conf|\.claude\.json"
    r"|\.flaskenv|\.?secret\.(json|ya?ml|toml)|\.(curlrc|wgetrc|token)|token\.json"
    r"|(api|access|o?auth|bot|refresh|github|gitlab|slack|discord|telegram|openai)[-_]?"
    r"(tokens?|secrets?)(\.(txt|json))?"
    r"|local\.settings\.json|appsettings\.(production|staging)\.json"
    r"|(.*[-_.])?(private|secret)([-_.]?key)?\.(asc|gpg)"
    r"|(production|staging|development|cosign|minisign|pgp|gpg)\.key|\.?htpasswd|\.authinfo(\.gpg)?"
    r"|.+\.(keytab|keyring|1pif|1pux)|krb5cc_\d+|\.(smbcredentials|sentryclirc|ftpconfig|zhistory)"
    r"|\.(consul|nomad)-token|\.?pgpass\.conf|(fish|dbshell)_history|\.dbshell|sftp-config\.json"
    r"|(lastpass|bitwarden|1password|dashlane|keepass)([-_. ].*)?\.(csv|json|xml)"
    r"|(api|private)[-_]?keys?\.(json|ya?ml|toml)|gha-creds-\w+\.json|oauth_creds\.json"
    r"|\.(muttrc|mbsyncrc|offlineimaprc|mailrc|lftprc|erlang\.cookie|htdigest|getmailrc|vncpasswd)"
    r"|(chap|pap)-secrets|(ipsec|rsyncd?|esmtp|samba)\.secrets|smbcredentials|\.netrc\.gpg"
    r"|wpa_supplicant([-_].*)?\.conf|.+\.(nmconnection|htpasswd)|rootkey\.csv|secring\.asc"
    r"|(.*[-_])?accesskeys\.csv"
    r"|token\.pickle|hudson\.util\.secret|tailscaled\.state|cookies\.txt"
)
_ENV = ".env"
_ENV_FILES = frozenset({
    "prod", "production", "dev", "development", "staging", "test", "testing", "qa", "uat", "ci",
    "local", "common", "shared", "base", "secret", "secrets", "app", "db", "database", "api",
    "docker", "compose", "backend", "frontend", "web", "server", "client", "worker", "auth",
    "mail", "smtp", "stripe", "aws", "postgres", "mysql", "redis", "private", "keys", "tokens",
})  # fmt: skip
"""Names with which `.env` is a file also in the words of a program, where `process.env` is none."""
_SETTINGS = LatePattern(
    r"\.git|\.gitmodules|\.gitattributes|\.gitconfig|\.hg|\.hgrc|\.svn|\.husky"
    r"|\.(bash|zsh|ksh|mksh|c?sh|tcsh|dash)rc|\.bash_(profile|login|logout|aliases)|\.profile"
    r"|\.z(shenv|profile|login|logout)|\.(login|logout|inputrc|xprofile|xinitrc|xsession|xsessionrc)"
    r"|\.(screenrc|tmux\.conf|gdbinit|lldbinit|irbrc|rprofile|psqlrc|pythonrc(\.py)?|direnvrc)"
    r"|config\.fish|\.(vim|gvim|nvim|view|ex|nano)rc|\.vim|\.emacs(\.d)?|\.dir-locals(-2)?\.el"
    r"|\.vscode|\.idea|\.fleet|\.zed|.{1,255}\.code-workspace|.{1,255}\.sublime-project"
    r"|\.(claude|cursor|windsurf|codex|gemini|continue|roo|kiro|aider.*|opencode|goose)"
    r"|\.(cursor|windsurf|cline|goose)(rules|hints|ignore)|\.?mcp\.json"
    r"|(claude(\.local)?|agents|gemini)\.md|copilot-instructions\.md|git~\d|\.nvim\.lua"
    r"|\.devcontainer(\.json)?|(site|user)customize\.py|\.(ipython|jupyter)|\.yarnrc(\.yml)?"
)
"""Files and folders that programs obey unasked."""
_SETTINGS_PLACE = re.compile(
    r"(?:^|/)(?:\.cargo/config(?:\.toml)?$|\.config/(?:autostart|systemd)/)"
)
_AS_WORDS = re.compile(r"(?:^|[/\s])[\"'\\]*-[^\s/]|\s[\"'\\]*/")
"""Matches names that a program, given them whole or split at their blanks, may take for an option
or another path."""
_BETWEEN_NAMES = re.compile(r"[^\w.@+~-]+")
_HARMLESS = re.compile(
    r"\.env(\.[a-z]{1,20})?\.(example|sample|template|dist|defaults?|schema|tpl)"
)
_PUBLIC = re.compile(
    r"(?:[\w.-]{1,80}[._-])?(?:pub(?:lic)?(?:[._-]?key)?|(?:root[._-]?)?ca|cacerts?|(?:full)?chain"
    r"|ca[._-](?:certs?|certificates?|bundle|chain|root)|root[._-]cert|bundle)\.pem"
)
"""Certificates of authorities, chains of them, and public keys."""
_SAMPLE = re.compile(r"(?:\A|[._-])(?:example|sample|template|dist|defaults?|schema)\.env\Z")
_COPY_END = re.compile(
    r"(?:~|\.(?:bak|backup|old|orig|saved?|copy|prev|tmp|dpkg-(?:old|dist|new))"
    r"|\.\d{4}-?\d\d-?\d\d| \(\d{1,3}\)| (?:- )?\(?(?:copy|kopie|copie|copia)\)?(?: \(?\d{1,3}\)?)?"
    r"){1,3}\Z"
)
_COPY_BEGIN = re.compile(r"(?:copy (?:\(\d{1,3}\) )?of|kopie von|copie de|copia de) ")
_SWAP_END = re.compile(r"\.sw[a-p]\Z")
"""Suffixes of an editor's or a person's copy of a file."""
_PLACE = LatePattern(
    r"(?:^|/)(?:\.config/(?:gh|hub|glab-cli|op|doctl|gcloud|rclone|git/credentials)(?:/|$)"
    r"|\.m2/settings(?:-security)?\.xml$|\.gradle/gradle\.properties$|\.[a-z]+/auth\.json$"
    r"|\.(?:subversion|svn)/auth/|\.config/github-copilot/(?:hosts|apps)\.json$"
    r"|\.(?:fly|databricks|dbt|netlify|nuget|twilio-cli|doctl|ngrok2)/"
    r"(?:config\.(?:ya?ml|json)|profiles\.yml|nuget\.config|ngrok\.yml)$"
    r"|\.circleci/cli\.yml$|\.mutt/passwords?$|\.weechat/sec\.conf$|\.cache/huggingface/token$"
    r"|\.(?:cargo|gem|heroku|pulumi)/credentials$"
    r"|\.config/(?:hcloud|linode-cli|heroku|ngrok|stripe|solana|sops|linear|flyctl|configstore"
    r"|composer|atlascli)(?:/|$)|\.local/share/keyrings/|\.(?:stripe|aliyun|bluemix|mc|tccli"
    r"|hex|expo|influxdbv2|cassandra)/(?:config\.(?:json|toml)|default\.credential|hex\.config"
    r"|state\.json|configs|cqlshrc|credentials)$|\.(?:anthropic|openai)/(?:api[-_]?)?key$"
    r"|(?:containers|com\.vercel\.cli|opencode)/auth\.json$|\.vscode/sftp\.json$|\.auth/.+\.json$"
    r"|age/keys\.txt$|(?:default|profile \d+|network)/cookies$"
    r"|(?:deploy_key|deploy_rsa|access_token|token|credentials)$"
    r"|\.turnkeeper/snapshots(?:/|$))"  # copies of all files, under names that tell nothing
)

_KEEPER = re.compile(
    r"\.(?:config|m2|gradle|subversion|fly|databricks|dbt|netlify|nuget|twilio-cli|doctl|ngrok2|svn"
    r"|circleci|mutt|weechat|cargo|gem|heroku|pulumi|codex|stripe|aliyun|bluemix|mc|tccli|hex|expo"
    r"|influxdbv2|cassandra|anthropic|openai|local|auth|turnkeeper)"
)
KEPT = (
    *("settings.xml", "settings-security.xml", "gradle.properties", "hosts.yml", "cli.yml"),
    *("config.yml", "config.yaml", "profiles.yml", "nuget.config", "ngrok.yml", "sec.conf"),
)
"""Names of files that are for secrets in a folder such as `.m2`, and mean nothing elsewhere."""


@lru_cache(maxsize=16_384)
def is_secret(name: str) -> bool:
    """True if a file or folder of this name usually holds credentials. Spelling variants that
    some file systems take for the same name count: case, trailing dots and spaces."""
    if len(name) > MAX_NAME:
        return False
    seen = "".join(char for char in name if unicodedata.category(char) != "Cf")
    plain = unicodedata.normalize("NFKC", seen).casefold().strip(" ").rstrip(" .")
    names = (plain, drop_copy_marks(plain))
    harmless = any(map(_HARMLESS.fullmatch, names)) or any(map(_SAMPLE.search, names))
    harmless = harmless or (any(map(_PUBLIC.fullmatch, names)) and "priv" not in plain)
    return any(map(_SECRET.fullmatch, names)) and not harmless


def drop_copy_marks(name: str) -> str:
    """The name of the file of which one of this name is a copy: `x` for `x.bak`, `x~`, `#x#`,
    `x (1)`, `Copy of x`."""
    if name[:1] == name[-1:] == "#":
        name = name[1:-1]
    elif name.startswith(".#"):
        name = name[2:]
    elif name[:1] == "." and _SWAP_END.search(name):
        name = name[1:-4]
    name = _COPY_END.sub("", _COPY_BEGIN.sub("", name, count=1) if " " in name else name)
    stem, dot, end = name.rpartition(".")
    return _COPY_END.sub("", stem) + dot + end if stem else name  # `prod (1).env`


def is_keeper(folder: str) -> bool:
    """Return True if a program keeps secrets below a folder of this name, beside other things."""
    return bool(_KEEPER.fullmatch(folder.casefold()))


def holds_settings(path: str) -> bool:
    """Return True, by the path's words, if a program obeys the file as soon as it runs nearby:
    settings of a repository, a shell, an editor or an agent, or a name that matters where a
    wildcard finds it."""
    return bool(_AS_WORDS.search(unescape_name(path))) or is_settings(path)


def is_settings(path: str) -> bool:
    """As `holds_settings`, for a path that is known to be one name."""
    parts = unescape_name(path).replace("\\", "/").split("/")
    plain = [unicodedata.normalize("NFKC", part).casefold().rstrip(" .") for part in parts]
    return any(map(_SETTINGS.fullmatch, plain)) or bool(_SETTINGS_PLACE.search("/".join(plain)))


def names_secret(words: str) -> bool:
    """True if a command or code names a file or folder that usually holds credentials."""
    found = set(_BETWEEN_NAMES.split(words))
    named = (part for word in found for part in list_named(word))
    return any(is_secret(part) and not _is_attribute(part) for part in named)


def _is_attribute(name: str) -> bool:
    """Return True for what in a program is more often an attribute than a file."""
    stem = name.casefold().removesuffix(_ENV)
    if stem == name.casefold() or stem in _ENV_FILES:
        return False
    return stem.replace(".", "").isidentifier()


def list_named(word: str) -> tuple[str, ...]:
    """Return the files that a program may read from the word of a command: itself, and the file
    after an option's letter (`-f.env`), `=` or `@`."""
    named = [part for part in word.split("=") if part]
    if word[:1] == "-" and word[1:2] not in ("", "-"):
        named.append(word[2:])
    named += [part.partition("@")[2] for part in named if "@" in part]
    return tuple(dict.fromkeys((word, *filter(None, named))))


def names_secret_file(path: str) -> bool:
    """Return True if a part of the path is a name for secrets, also with a stream after its colon,
    or if a program keeps secrets at this path under an ordinary name."""
    parts = [part for part in path.split("/") if part.strip(" .")]
    if any(is_secret(part) or is_secret(part.partition(":")[0]) for part in parts):
        return True
    return bool(_PLACE.search("/".join(parts).casefold()))
