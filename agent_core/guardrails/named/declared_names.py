"""Names of secrets as settings, code and XML write them directly before a value, and what a
declaration writes in between."""

_ACCOUNTS = (
    *("admin", "auth", "db", "ftp", "imap", "keystore", "ldap", "login", "mail", "mysql", "pg"),
    *("postgres", "proxy", "redis", "remote", "root", "smtp", "sql", "user", "wifi"),
)
PASSES = tuple(f"{one}pass" for one in _ACCOUNTS)
"""Names such as `dbPass`. Other words end so, too: `bypass`, `compass`, `renderPass`."""
PLAIN_NAMES = (
    *("client_secret", "client-secret", "clientsecret", "aws_secret_access_key", "secret_key"),
    *("secretkey", "secret-key", "secret_access_key", "api_key", "api-key", "apikey", "password"),
    *("access_token", "access-token", "accesstoken", "auth_token", "auth-token", "authtoken"),
    *("passwd", "passphrase", "private_key", "private-key", "privatekey", "private_key_id"),
    *("secretaccesskey", "session_token", "authtoken", "security_token", "refresh_token"),
    *("sharedkey", "accesskey", "secret_key_base", "vault-token", "private-token", "auth-key"),
    *("psk", "_pass", "_auth", "apisecret", "api_secret", "api key", "identified by", "app_key"),
    *("encryption_key", "encryptionkey", "signing_key", "signingkey", "security-token"),
    *("auth_key", "nonce_key", "logged_in_key", "auth_salt", "nonce_salt", "logged_in_salt"),
    *("subscription-key", "hmac_key", "hmac-key", "pre-shared-key", "preshared-key", "master_key"),
    *("secretstring", "authtok", "secret access key", "fernet_key", "sonar.login"),
    *PASSES,
)
SHORT_NAMES = (
    *("identified by", "passwd", "password", "passphrase", "psk", "_pass"),
    *("auth_key", "nonce_key", "logged_in_key", "auth_salt", "nonce_salt", "logged_in_salt"),
    *PASSES,
)
"""Names whose values count from ten characters on, instead of sixteen."""
TYPED = (
    r"(?:[ \t]?:[ \t]?(?:&(?:'static[ \t])?)?"
    r"(?:str|string|String|SecretStr|Final|(?:Final|Optional|ClassVar)\[str\])"
    r"(?:\?|[ \t]\|[ \t](?:None|null|undefined))?[ \t]?|[ \t]string[ \t]?)"
)
"""The type of a text, behind its name in Python, TypeScript, Rust, Swift, Kotlin and Go."""
TYPED_BEGUN = (
    r"(?:[ \t]?:[ \t]?(?:&(?:'\w{0,8}[ \t]?)?)?\w{0,9}(?:\[\w{0,4}\]?)?"
    r"(?:\?|[ \t]\|(?:[ \t]\w{0,9})?)?[ \t]?|[ \t]string[ \t]?)"
)
"""Matches an incomplete one."""
_ATTRIBUTE = r"[ \t][\w:]{1,16}=\\{0,2}\"[^\"<>\n\\]{0,32}\\{0,2}\""
ATTRIBUTES = rf"(?:{_ATTRIBUTE}){{1,3}}"
"""Attributes of an element of XML whose name is that of a secret."""
ATTRIBUTES_BEGUN = (
    rf"(?:{_ATTRIBUTE}){{0,3}}"
    r"(?:[ \t](?:[\w:]{1,16}(?:=(?:\\{0,2}\"[^\"<>\n\\]{0,32}\\{0,2})?)?)?\Z)?"
)
"""Matches incomplete ones."""
