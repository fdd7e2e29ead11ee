"""Recognises fields of a server's form that ask for a secret, in the product's languages."""

import re
import unicodedata

from agent_core.guardrails.injections import fold_letters

_SECRET = re.compile(
    r"pass ?(?:word|wd|phrase|code)|api.?key|private.?key|secret.?key|access.?key|card.?number"
    r"|security.?code|seed.?phrase|recovery.?(?:phrase|key)|one.?time.?(?:code|pass)"
    r"|kennwort|passwort|zugangs(?:daten|code)|geheimzahl|sicherheitscode|api.?schlüssel"
    r"|(?:privater|geheimer) schlüssel|(?:kredit)?karten ?nummer"
    r"|mots? de passe|clé (?:api|secrète|privée|d.accès)|code (?:secret|de sécurité)"
    r"|numéro de (?:la )?carte"
    r"|contrase[nñ]a|clave (?:secreta|privada|api|de (?:api|acceso))|código de seguridad"
    r"|número de (?:la )?tarjeta"
    r"|\bsenhas?\b|palavra.passe|chave (?:secreta|privada|api|de (?:api|acesso))"
    r"|código de segurança|número do cartão"
    r"|парол[ьяюе]|ключ api|api.?ключ|(?:секретн|приватн|закрыт)[а-я]{2,3} ключ|пин.?код"
    r"|код из (?:смс|sms)|номер карты"
    r"|パスワード|パスコード|暗証番号|秘密鍵|api ?キー|アクセスキー|認証コード|カード番号"
    r"|密[码碼]|口令|私[钥鑰]|密[钥鑰]|[验驗][证證][码碼]|助[记記][词詞]|信用卡[号號]"
    r"|비밀번호|인증번호|wachtwoord|parola d.ordine|chiave (?:api|segreta|privata)"
)
_NAMED = re.compile(
    r"\bsecrets?\b|credential|\bpin\b|\bcvv\b|\bcvc\b|\bssn\b|\bt?otp\b|\bpwd\b|\bbearer\b"
    r"|\btoken\b(?! (?:count|limit|budget|usage|size|price|symbol|type))"
    r"|^pass$|\bcookies?$|\bmnemonic\b|\bssh key\b|credit ?card|social security"
    r"|(?:backup|recovery|verification|login|auth|2fa|mfa|sms|one time) codes?\b|security answer"
    r"|geheimnis|identifiants? de connexion|credenciales|credenciais|\bhasło\b|\bşifre\b"
)
_BORDER = re.compile(r"(?<=[a-zß-öø-ÿа-яё])(?=[A-ZÀ-ÖØ-ÞА-ЯЁ])|[_\s-]+")
"""Matches between the words of a name."""


def asks_for_secret(name: str, label: str, about: str) -> bool:
    """Return True if a field of this name, label and description asks for one. A description may
    say that no secret is wanted: in it only the plainest words count."""
    names = [
        fold_letters(_BORDER.sub(" ", unicodedata.normalize("NFKC", one))).strip()
        for one in (name, label)
    ]
    return any(map(_NAMED.search, names)) or any(map(_SECRET.search, (*names, fold_letters(about))))
