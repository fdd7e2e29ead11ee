"""Recognises forms of a server that ask for a secret, by their fields and by the words before them,
in the product's languages."""

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
    if any(map(_NAMED.search, names)) or any(map(_SECRET.search, names)):
        return True
    said = fold_letters(about)
    return any(
        _REFUSED.search(said, max(0, found.start() - _NEAR), found.start()) is None
        for found in _SECRET.finditer(said)
    )


_SPOKEN = re.compile(
    rf"(?:{_SECRET.pattern}|\b(?:pin|cvv|cvc|ssn|t?otp|jwt|credentials|login data|mnemonic|hasło"
    r"|identifiants|credenciales|credenciais|şifre\w*)\b|\b(?:open ?ai|anthropic|ssh|login) key\b"
    r"|\b(?:api|access|auth|bearer|refresh|secret|session|login|id) token\b"
    r"|\btoken\b(?=(?: here| please| bitte)?[ :?.!]*\Z)|\b(?:session|login|auth) cookies?\b"
    r"|(?:backup|recovery|verification|login|auth|2fa|mfa|sms|one time|security|\d digit) codes?\b"
    r"|\b(?:code|código|código que) (?:\w+ ){0,4}(?:sms|e ?mail|authenticator|we sent|texted)\b"
    r"|\bcode (?:\w+ ){0,2}(?:sms|e ?mail)\b|maiden name|social security(?: number)?"
    r"|credit ?card|kreditkarte|carte bancaire|\bid (?:rsa|ed25519)\b|\.env\b(?!\.))"
    r"(?!(?:s\b)? ?(?:polic|length|manager|reset|expir|scop|hint|field|name\b|login\b|security\b"
    r"|count|id\b|type\b|based|protected|rules?\b|column|page|file ?name))"
)
"""Secrets as sentences name them; a word behind may make something else of one."""
_OBJECT = (
    r"(?:(?!(?:of|for|to|in|about|on|if|that|which|name|whether|whose)\b)[\w.~/]{1,20},? ){0,5}"
)
_GIVE = re.compile(
    r"\b(?:(?:re )?(?:enter|typ|past|provid|suppl|send|giv|tell|writ|submit|insert|input|shar|copy"
    r"|show|fill|key|hand|put|specif|need)\w{0,3}(?: in| out| down| over| back)?"
    r"|(?:repl\w{1,4}|answer|respond|confirm|verify|authenticate|sign in|log in|in the \w{1,20}"
    r"|field) with|answer to|contents? of|what s|what is|value ="
    r"|(?:value|text|answer) (?:should|must) be)"
    rf" (?={_OBJECT}[~\w./]{{0,40}}\Z)"
)
"""Asks in English for what stands in the same part of the sentence."""
_ASK = re.compile(
    r"\b(?:geben|gib|gebt|nenn|tipp|schreib|füg|send|schick|wie lautet|brauche|saisi|entre[rz]"
    r"|tape[rz]|colle|indiqu|fourni|donne|quel(?:le)? est|introdu|escrib|ingres|pegu?[ae]|facilit"
    r"|proporcion|cuál es|requiere|necesito|envíe|digit|insir|cole|informe|qual é|forneç|envie"
    r"|escrev|preciso d|введ|укаж|встав|пришл|напиш|сообщ|какой у|отправ|нужен|inseri"
    r"|incolla|fornis|podaj|wpisz|wklej|voer|plak|geef)|eingeben|einfügen|einzugeben|输入|輸入|粘贴|貼上|提供|填写|發送|发送"
    r"|告诉|什么|需要你|需要您|入力|貼り付け|教え|記入|送って|何です|お願い|입력|알려|붙여|\bgirin|\byaz[ıi]n"
)
"""Asks in other languages, some of which name it before."""
_YOURS = re.compile(
    r"(?<!for )(?<!about )(?<!set )(?<!change )(?<!forgot )(?<!forgotten )(?<!with )"
    r"(?:\b(?:your|deine?n?|ihre?n?|votre|ton|tu|su|sua|tua)|ваш|твой|[你您]的)"
    r" ?(?:[\w.]{1,16} )?\Z"
)
_OF_USE = re.compile(r"\b(?:what|which) (?:\w{1,16} )?\Z")
_USED = re.compile(r" (?:do|did|have) you\b")
_REFUSED = re.compile(
    r"(?:\b(?:not|n t|never|no|nicht|kein\w*|niemals|ne|n|não|nunca|jamais|non)|(?<!\w)не"
    r"|不要|请勿|勿|别|不会|不需要)(?: \w{1,12}){0,2} ?\Z"
)
_OTHER = re.compile(
    r"(?:\b(?:whose|d[ea]s?|cuy[ao]s?|dont|dessen|deren|für|für das|para la|para|pour le)|чей"
    r"|重置|修改|忘记|重設) ?\Z"
)
"""Before a secret that only says more of something else."""
_OTHER_AFTER = re.compile(
    r"[^.!?。]{0,12}?(?:ないで|しない|不要|마세요|\bnicht\b|\bpas\b)|的(?!是|$)|を(?:リセット|変更|再設定|忘れ)"
    r"| (?:is|was|has|had|will|can|may|must|should|ist|wird|wurde|muss|est|a été|es|ha|será"
    r"|foi|é)\b"
)
_ALONE = re.compile(r"(?:(?:your|the|ihr|dein|please|sudo|root|admin|old|new|\w{1,20} s) ){0,3}\Z")
_ALONE_AFTER = re.compile(
    r"(?: (?:for|of) \S{1,40}| code| please| bitte| here| (?:is )?(?:required|needed)| requis"
    r"| erforderlich)?[ :?!.…)]*\Z"
)
_SIGNS = re.compile(r"[*`ˋ\"“”„«»<>()\[\]'’]+|(?<=\w),(?= (?:please|bitte))")
_WORD = re.compile(r"(?<!\S)\S")
_NEAR, _LONGEST = 40, 2_000


def demands_secret(message: str) -> bool:
    """Return True if the words before a form tell the person to write one. Words about secrets, or
    that none is wanted, do not."""
    plain = _SIGNS.sub(" ", unicodedata.normalize("NFKC", message).replace("(", ": "))
    text = " ".join(fold_letters(_BORDER.sub(" ", plain[:_LONGEST])).split())
    return any(_is_demanded(text, *found.span()) for found in _SPOKEN.finditer(text))


def _is_demanded(text: str, start: int, end: int) -> bool:
    before, after = re.split(r"[.!?:;] |[。！？]", text[:start])[-1], text[end : end + _NEAR]
    if _REFUSED.search(before) or _OTHER.search(before):
        return False
    if _ALONE.fullmatch(before) and _ALONE_AFTER.fullmatch(after):
        return True
    if _OTHER_AFTER.match(after):
        return False
    if given := list(_GIVE.finditer(before)):
        return _REFUSED.search(before, 0, given[-1].start()) is None
    if _YOURS.search(before) or (_OF_USE.search(before) and _USED.match(after)):
        return not any(_REFUSED.search(before[: found.start()]) for found in _WORD.finditer(before))
    if given := list(_ASK.finditer(before, len(before) - _NEAR)):
        return _REFUSED.search(before, 0, given[-1].start()) is None
    return _ASK.search(re.split(r"[.!?;] |[。！？]", after)[0]) is not None
