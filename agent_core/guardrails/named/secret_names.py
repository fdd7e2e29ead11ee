"""Names of secrets in many languages, as people and settings write them before a value."""

import re
import unicodedata
from functools import cache

PASSWORDS = (
    *("passwort", "kennwort", "zugangscode", "mot de passe", "mots de passe", "motdepasse"),
    *("contraseña", "contrasena", "senha", "palavra passe", "parola d'ordine", "пароль", "пароля"),
    *("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "hasło", "haslo"),
    *("şifre", "şifreniz", "sifre"),
    *("wachtwoord", "lösenord", "passord", "adgangskode", "salasana", "heslo", "jelszó"),
    *("lozinka", "κωδικός", "סיסמה", "סיסמא", "كلمة المرور", "كلمة السر", "mật khẩu", "รหัสผ่าน"),
    *("kata sandi", "पासवर्ड"),
)  # fmt: skip
"""Names of passwords: any value counts that somebody may have chosen for one."""
KEYS = (
    *("password", "passwd", "passphrase", "pass", "pwd", "pw", "mdp", "clave", "parola", "clé api"),
    *("clé secrète", "clé privée", "clave secreta", "clave de api", "chave de api"),
    *("chave secreta", "api schlüssel", "wlan schlüssel", "ключ", "токен"),
    *("密钥", "密鑰", "令牌", "私钥", "秘密鍵", "トークン", "apiキー", "合言葉"),
    *("암호", "토큰", "비밀키", "geheimnis", "jeton"),
)  # fmt: skip
"""Names of what may also be something else, or of what is found already if it is written plainly:
a value has to look drawn."""
TOKENS = ("token", "api key", "secret key", "access key", "secret")
"""Names that stand before many other words: a sentence or a pair of fields tells their value."""
MAX_NAME = 24
"""Characters of a name as it is written, at most."""
_AFTER = r"(?![A-Za-z_\u00df-\u024f\u0370-\u03ff\u0430-\u052f])"
_BEFORE = r"(?<![A-Za-z\u00df-\u024f\u0370-\u03ff\u0430-\u052f])"
_SHORT = 4
"""Letters of a name that occurs in longer runs of letters and digits by chance."""
_JOINED = {" ": "[ _-]", "'": "['’]"}


@cache
def spell_name(name: str) -> str:
    """Return an expression for `name` in capitals and small letters, its accents as letters or as
    marks of their own, with any of the signs that join its words. It has no group."""
    composed, apart = (_spell(unicodedata.normalize(form, name)) for form in ("NFC", "NFD"))
    written = f"(?:{composed}|{apart})" if _has_marks(name) else composed
    if len(name) <= _SHORT and name.isascii():
        return rf"(?<![A-Za-z0-9+/]){written}(?![A-Za-z0-9_+/])"
    return f"{_BEFORE if name in KEYS or name in TOKENS else ''}{written}{_AFTER}"


def _spell(name: str) -> str:
    return "".join(
        _JOINED.get(one) or (one if one == one.upper() else f"[{one}{one.upper()}]") for one in name
    )


def _has_marks(text: str) -> bool:
    return any(map(unicodedata.combining, unicodedata.normalize("NFD", text)))


def _find_sign(name: str) -> str:
    """Return the longest part of a name that is written in one way only; of a short one the word,
    without which it would be found in many texts."""
    words = re.split("[ ']", name)
    plain = "".join(one if not _has_marks(one) else " " for one in name)
    sign = max(re.split("[ ']", plain), key=len)
    if len(words) == 1 or len(sign) > _SHORT:
        return sign
    return max(words, key=lambda word: (len(word), not word.isascii()))


SIGNS = {name: _find_sign(name) for name in (*PASSWORDS, *KEYS, *TOKENS)}
"""By the name the part of it by which texts, in small letters, are searched."""
BEGINNINGS = frozenset(
    written[:n]
    for name in SIGNS
    for written in {name, unicodedata.normalize("NFD", name)}
    for n in range(1, len(written) + 1)
)
"""Names, and texts that become one as they go on; joined by blanks."""
