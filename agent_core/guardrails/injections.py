"""Recognises text that tries to give an agent new orders, in nine languages.

A hint and no border: what a model may do is decided elsewhere, whatever it was told. Texts without
one of the words that every such text needs are skipped; the expressions begin at such a word and
look a bounded number of characters ahead.
"""

import re
import unicodedata
from functools import cache
from typing import Literal

from msgspec import Struct

from agent_core.guardrails.injection_phrases import ELSEWHERE, ROWS
from agent_core.guardrails.sign_search import has_any

InputScanner = Literal["injection", "jailbreak"]
MOST = 200_000
"""Maximum characters scanned: models for this scan no more either."""
_GAP = r"[^.!?\n]{0,40}?"
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-"
    "\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]"
)
_TAGS = re.compile("[\U000e0020-\U000e007e]{6}")
_LOOKS = str.maketrans("аеорсухіѕјԁԛԝοαεικν", "aeopcyxisjdqwoaeikv")
_CAPITALS = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ"
_SMALL_CAPITALS = str.maketrans(_CAPITALS, "abcdefghijklmnoprstuvwyz")
_HAS_CAPITALS = re.compile(f"[{_CAPITALS}]")
_DIGITS = str.maketrans("013457@$", "oleastas")
_SPELT = re.compile(
    r"[ ._\\-](?:[a-z][ .-](?<=(?<!\w)[a-z][ .-]..)[a-z](?:[ .-][a-z]){4,}(?!\w)"
    r"|(?<=[a-z]{3}[_-])[a-z]{2,}[_-][a-z]{2}|(?<=\\)n[a-z]{3})"
)
"""Matches letters apart, and words that something else than a blank parts. It begins with what
parts them, as the search for one of few characters is fast."""
_APART = re.compile(r"(?<![a-z])([a-z])[ .-](?=[a-z](?![a-z]))")
_AS_DIGITS = re.compile(r"[013457@$](?<=[a-z]{2}.)[a-z]{2}")
_BETWEEN = re.compile(r"\\[nrt]|[_-]+")
_REACH = 300
"""Characters before and after a word that belong to the order that it is part of."""
_LEFT_OUT = " x. x "
"""Stands for text between two such places: no order goes over it, none begins or ends with it."""


class _Family(Struct, frozen=True, kw_only=True):
    """Expressions of one kind; `signs`: words of which each text has one that they match."""

    scanner: InputScanner
    signs: tuple[str, ...]
    patterns: tuple[str, ...]


MAX_NEGATED = 100
"""Negated matches of a text that are read; it is suspicious with more."""
_NOT_BEFORE = re.compile(
    r"(?:(?:\b(?:do not|don['’]?t|never|must not|should not|cannot|can['’]t|not to|nicht|niemals|no"
    r"|nunca|non|não|jamais|ne)|(?<!\w)не) (?:ever |just |simply )?|\bn['’]"
    r"|(?:不要|请勿|請勿|不能|不可|别|別))\Z"
)
_NOT_INSIDE = re.compile(
    r"(?:ignorier|missacht|vergiss|vergesst|vergessen sie|übergeh)\w*"
    r"(?: (?:bitte|mir|jetzt|aber|uns))? (?:nicht|nie|niemals)\b"
)
_NOT_AFTER = re.compile(r"(?:無視し|忘れ)(?:ないで|ないよう|ては(?:いけ|なら|だめ))")
_INSTRUCTIONS_EN = (
    r"(?:instruction|rule|prompt|guideline|directive|order(?! (?:of|in|by)\b)|command|direction"
    r"|polic)"
)
_FAMILIES = (
    _Family(
        scanner="injection",
        signs=(
            "ignore",
            "disregard",
            "forget",
            "override",
            "bypass",
            "supersede",
            "do not follow",
            "don't follow",
            "pay no attention",
            "stop following",
            "overrule",
        ),
        patterns=(
            rf"\b(?:ignor|disregard|forget|overrid|bypass|supersed|overrul|pay no attention|"
            rf"(?:do not|don't|stop) follow)\w*{_GAP}\b(?:previous|prior|earlier|above|preceding|"
            rf"foregoing|former|"
            rf"original|initial|system|your|developer'?s?|all|any|the|these|those|existing|"
            rf"safety)\b"
            rf"{_GAP}\b{_INSTRUCTIONS_EN}",
            r"\b(?:ignor|disregard|forget)\w* (?:everything|anything|all|what)\b[^.!?\n]{0,30}?\b"
            r"(?:above|before|told|said|previous|prior|so far|earlier|until now)\b",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "system prompt",
            "system message",
            "hidden instruction",
            "initial instruction",
            "system instruction",
            "developer message",
        ),
        patterns=(
            rf"\b(?:reveal|show|print|output|repeat|leak|display|tell|send|dump|copy|"
            rf"give)\w*\b{_GAP}"
            rf"\b(?:system (?:prompt|message|instruction)|hidden instruction|initial instruction|"
            rf"developer message)",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "new instruction",
            "important instruction",
            "system:",
            "<system",
            "[system",
            "[inst",
            "<|",
            "assistant:",
            "### instruction",
            "begin system",
            "<important",
            "system note",
            "note to the ai",
            "note to ai",
            "ai assistant",
            "ai agent",
            "attention ai",
            "to the assistant",
            "language model",
            "llm",
            "system override",
            "admin override",
        ),
        patterns=(
            r"\b(?:new|important|updated|real|actual) (?:system )?instructions?\b ?(?:[:：]|"
            r"(?:follow|from|for (?:you|the (?:ai|assistant|agent|model|bot)))\b)",
            r"(?:^|\n)[ \t>#*]{0,8}(?:system|assistant)(?: ?(?:message|prompt|note|override|"
            r"update))?"
            r" ?[:：]",
            r"<\|(?:im_start|im_end|system|endoftext|start_header_id)|\[/?inst\]|<</?sys>>"
            r"|</?(?:system|important)(?:[ _-]?(?:prompt|instruction|message|reminder)s?)?>"
            r"|\[/?system[ _-]?(?:message|prompt|override|note|update)?\]|### ?instructions?:",
            r"\b(?:note|message|attention|instructions?|notice|reminder)\b ?(?:to|for)?,? ?(?:the "
            r"|any "
            r"|all |every )?(?:ai|llm|language model|assistant|agent|"
            r"chatbot)s?\b[^.\n]{0,20}[:,!-]",
            r"\b(?:ai|llm|language model)s? ?(?:assistants?|agents?|"
            r"models?)?\b[^.!?\n]{0,30}?\b(?:must|"
            r"should|shall|are (?:required|instructed|told|ordered) to|please|have to|need to) "
            r"(?:now |"
            r"also |immediately |first |always )?(?:run|execute|send|forward|delete|call|open|"
            r"fetch|"
            r"visit|post|e-?mail|upload|reveal|ignore|write|save|remember|approve|schedule|print|"
            r"include|reply|respond|recommend|say)\b",
            r"\b(?:system|admin|developer|root) override\b",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "without asking",
            "without telling",
            "do not tell",
            "don't tell",
            "without mention",
            "do not mention",
            "don't mention",
            "secretly",
            "do not inform",
            "without inform",
            "user must not",
            "without the user",
        ),
        patterns=(
            rf"\b(?:do not|don't|never|without) (?:tell|mention|inform|ask|notify|alert)\w*{_GAP}"
            rf"\b(?:user|person|human|owner|operator|anyone|them|him|her)\b",
            r"\bwithout the user(?:'s)? (?:knowing|knowledge|noticing|consent|approval)",
            r"\bsecretly (?:send|run|forward|upload|call|execute|delete|add|post|copy)",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "ignorier",
            "missacht",
            "vergiss",
            "vergessen sie",
            "übergeh",
            "umgeh",
            "setze dich",
            "setzt euch",
            "setzen sie sich",
            "beachte nicht",
            "befolge nicht",
            "befolge keine",
            "zeige",
            "verrate",
            "nenne",
            "gib",
            "neue anweisung",
            "wichtige anweisung",
            "ohne den nutzer",
            "ohne den benutzer",
        ),
        patterns=(
            rf"\b(?:ignorier|missacht|vergiss|vergessen sie|übergeh|umgeh|(?:befolg|beacht)e "
            rf"(?:nicht|keine))\w*"
            rf"{_GAP}\b(?:alle|vorherig|bisherig|obig|früher|vorig|vorangegangen|deine|ihre|die|"
            rf"sämtlich|"
            rf"ursprünglich)\w*{_GAP}(?:anweisung|anleitung|regel|vorgabe|befehl|instruktion|"
            rf"richtlini|"
            rf"prompt)",
            r"\b(?:ignorier|vergiss|missacht|vergessen "
            r"sie)\w*[^.!?\n]{0,20}?\balles?\b[^.!?\n]{0,30}?\b"
            r"(?:oben|davor|bisher|zuvor|vorher|gesagt|bislang)",
            rf"\b(?:zeige?|verrate?|nenne?|gib|geben sie|zeigen sie)\b{_GAP}(?:system-?prompt|"
            rf"systemanweisung|system-?nachricht|geheimen? anweisung)",
            rf"\bsetz(?:e|t|en sie) (?:dich|euch|sich) über\b{_GAP}(?:anweisung|regel|vorgabe|"
            r"richtlini)\w* hinweg",
            r"\b(?:neue|wichtige|echte) (?:system-?)?anweisung(?:en)?\b ?(?:[:：]|an|für)",
            r"\bohne (?:den|die|dem) (?:be)?nutzer\w* (?:zu fragen|zu informieren|etwas zu sagen)",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "ignore",
            "oublie",
            "ne tiens pas compte",
            "ne tenez pas compte",
            "révèle",
            "affiche",
            "nouvelles instructions",
            "contourne",
            "passe outre",
            "passez outre",
            "montre",
            "faites abstraction",
            "fais abstraction",
            "sans le dire",
        ),
        patterns=(
            rf"\b(?:ignor|oubli|contourn|passez? outre)\w*{_GAP}"
            rf"(?:\b(?:toutes?|tous|les|vos|tes|ces)\b|l['’])"
            rf"{_GAP}\b(?:instruction|consigne|règle|directive|ordre|prompt)",
            rf"\b(?:ne ten?i?e[nz]?s? pas compte|fai(?:s|tes) abstraction)\b{_GAP}\b(?:instruction|"
            rf"consigne|règle|directive|ordre)",
            r"\boubli\w* tout ce qui\b",
            rf"\b(?:révèl|affich|montr|donn|répèt)\w*{_GAP}(?:prompt|invite|instructions?|message)"
            rf" (?:du |de )?syst[eè]me",
            r"\bnouvelles (?:instructions|consignes) ?(?:[:：]|pour)",
            r"\bsans (?:le dire|en parler|prévenir)[^.!?\n]{0,20}?utilisateur",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "ignora",
            "olvida",
            "haz caso omiso",
            "no hagas caso",
            "no sigas",
            "omite",
            "muestra",
            "revela",
            "nuevas instrucciones",
            "pasa por alto",
            "sin decir",
            "desestima",
        ),
        patterns=(
            rf"\b(?:ignor|olvid|omit|desestim|haz caso omiso|no (?:hagas|haga) caso|no sig[au]s?|"
            rf"pasa por "
            rf"alto)\w*{_GAP}\b(?:todas?|todos|las|los|tus|sus|cualquier|de|"
            rf"a)\b{_GAP}\b(?:instruccion|"
            rf"instrucción|regla|orden|órden|directri|indicacion|indicación|norma|prompt)",
            r"\b(?:olvid|ignor)\w* (?:de )?todo lo (?:anterior|que|dicho)",
            rf"\b(?:muestr|revel|enseñ|imprim|repit|d[ai]me)\w*{_GAP}(?:prompt|mensaje|"
            rf"instrucciones) "
            rf"(?:del? )?sistema",
            r"\bnuevas instrucciones ?(?:[:：]|para)",
            r"\bsin (?:decir|avisar|informar)\w*[^.!?\n]{0,12}? usuario",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "ignora",
            "dimentica",
            "trascura",
            "non seguire",
            "disattendi",
            "mostra",
            "rivela",
            "nuove istruzioni",
            "scorda",
        ),
        patterns=(
            rf"\b(?:ignor|dimentic|trascur|disattend|scord|non seguire)\w*{_GAP}(?:\b(?:tutte|"
            rf"tutti|le|"
            rf"i|gli|tue|ogni|qualsiasi)\b|l['’]){_GAP}\b(?:istruzion|regol|ordin|direttiv|"
            rf"indicazion|"
            rf"prompt)",
            r"\b(?:dimentic|ignor)\w* tutto (?:quello|ciò|quanto)",
            rf"\b(?:mostr|rivel|stamp|ripet|dimmi)\w*{_GAP}(?:prompt|messaggio|istruzioni) (?:di |"
            rf"del )?"
            rf"sistema",
            r"\bnuove istruzioni ?(?:[:：]|per)",
        ),
    ),
    _Family(
        scanner="injection",
        signs=("ignor", "esque", "desconsider", "não siga", "mostr", "revel", "novas instruções"),
        patterns=(
            rf"\b(?:ignor|esque[cç]|desconsider|não siga)\w*{_GAP}\b(?:todas?|todos|as|os|suas?|"
            rf"quaisquer|"
            rf"das?|dos)\b{_GAP}\b(?:instruç|regra|orden|diretri|comando|prompt)",
            r"\b(?:esque[cç]|ignor)\w* (?:de )?tudo (?:o que|isso|acima)",
            rf"\b(?:mostr|revel|imprim|repit|diga)\w*{_GAP}(?:prompt|mensagem|instruções) (?:do |"
            rf"de )?sistema",
            r"\bnovas instruções ?(?:[:：]|para)",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "игнорир",
            "забудь",
            "не обращай внимания",
            "не следуй",
            "покажи",
            "раскрой",
            "новые инструкции",
            "отмени",
        ),
        patterns=(
            rf"(?:(?:про)?игнорир|забудь|не (?:обращай внимания|следуй)|"
            rf"отмени)\w*{_GAP}(?:инструкци|правил|"
            rf"указани|команд|приказ|промпт|распоряжени)",
            r"забудь\w*[^.!?\n]{0,12}?\bвс[её]\b[^.!?\n]{0,20}?(?:выше|раньше|до этого|сказан|что)",
            rf"(?:покажи|раскрой|выведи|повтори|назови)\w*{_GAP}системн\w* (?:промпт|сообщени|"
            rf"инструкци)",
            r"новые (?:системные )?инструкции ?(?:[:：]|для)",
        ),
    ),
    _Family(
        scanner="injection",
        signs=(
            "忽略",
            "无视",
            "忘记",
            "忘掉",
            "不要理会",
            "不要遵守",
            "系统提示",
            "新指令",
            "新的指令",
            "無視",
            "忘記",
            "系統提示",
        ),
        patterns=(
            r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守)[^。！？\n]{0,16}?(?:指令|指示|规则|規則|提示|"
            r"命令|要求|设定|设置)",
            r"(?:显示|顯示|输出|透露|告诉我|告訴我|重复|打印|泄露)[^。！？\n]{0,12}?(?:系统|系統)(?:提示|消息|指令)",
            r"新的?(?:系统)?指令 ?[:：]",
            r"(?:忽略|忘记|无视)(?:以上|之前|前面|上面)的?(?:所有|全部|一切)",
        ),
    ),
    _Family(
        scanner="jailbreak",
        signs=(
            "dan",
            "do anything now",
            "jailbreak",
            "developer mode",
            "unfiltered",
            "uncensored",
            "no restrictions",
            "without restrictions",
            "no rules",
            "no limits",
            "god mode",
            "pretend",
            "roleplay",
            "act as",
            "you are now",
            "from now on",
            "evil",
            "unrestricted",
            "no ethical",
            "opposite mode",
            "aim",
            "stay in character",
        ),
        patterns=(
            r"\bdo anything now\b|\bdan mode\b|\byou are (?:now )?(?:going to (?:act|be) as "
            r")?(?:a )?dan\b",
            r"\b(?:jailbreak|jailbroken) (?:mode|prompt|yourself|you)\b|\b(?:enable|enter|"
            r"activate|switch "
            r"to|turn on)[^.!?\n]{0,16}?\b(?:jailbreak|developer|god|debug|evil|unrestricted|dan|"
            rf"opposite) mode\b{ELSEWHERE}",
            r"\b(?:pretend|act|roleplay|role-play|imagine|behave|respond|answer|you are now|from "
            r"now on "
            r"you)\b[^.!?\n]{0,60}?\b(?:without|no|free of|has no|have no|not bound by|ignores?|"
            r"un)[ -]?(?:any |all |ethical |moral |content |safety |more )*(?:restrict|filter|"
            r"rules\b|"
            r"limit|censor|guideline|ethic|moral|polic|safeguard)\w*",
            r"\b(?:unfiltered|uncensored|unrestricted|amoral|evil) (?:ai|assistant|chatbot|model|"
            r"version "
            r"of yourself|language model|persona|bot)\b",
            r"\b(?:never|do not|don't|not allowed to|cannot|can't) (?:refuse|decline|"
            r"reject)\b[^.!?\n]{0,40}?"
            r"\b(?:request|question|anything|order|instruction|answer|me)\b",
        ),
    ),
    _Family(
        scanner="jailbreak",
        signs=(
            "ohne einschränkung",
            "keine einschränkung",
            "ohne regeln",
            "ohne jede",
            "keine regeln",
            "unzensiert",
            "ohne filter",
            "entwicklermodus",
            "tu so",
            "du bist jetzt",
            "sans restriction",
            "aucune restriction",
            "sans filtre",
            "aucune règle",
            "sans règle",
            "mode développeur",
            "sin restricciones",
            "sin ningun",
            "sin filtro",
            "sin censura",
            "sin reglas",
            "modo desarrollador",
            "senza restrizioni",
            "senza filtri",
            "senza regole",
            "modalità sviluppatore",
            "sem restrições",
            "sem nenhum",
            "sem filtro",
            "sem regras",
            "sem censura",
            "modo desenvolvedor",
            "ограничени",
            "без цензуры",
            "без правил",
            "режим разработчика",
            "没有限制",
            "沒有限制",
            "没有任何限制",
            "不受限制",
            "开发者模式",
            "越狱",
            "无限制",
            "不受任何限制",
        ),
        patterns=(
            r"\b(?:tu so|verhalte dich|spiele?|du bist (?:jetzt|nun|ab sofort)|antworte?|stell "
            r"dir vor)\b"
            r"[^.!?\n]{0,60}?(?:(?:ohne|keine)n? (?:jegliche |jede[nrs]? |alle |moralische |"
            r"ethische )?"
            r"(?:einschränkung|regel|filter|grenze|zensur)|unzensiert)",
            r"\bentwicklermodus (?:ein|aktiv|an\b)|\b(?:aktivier|wechsl|schalt)\w*[^.!?\n]{0,20}?"
            rf"entwicklermodus{ELSEWHERE}",
            r"\b(?:fais comme si|tu es (?:maintenant|désormais)|agis|imagine|réponds|joue|"
            r"comporte-toi)\b"
            r"[^.!?\n]{0,60}?(?:sans|aucune?) (?:aucune? )?(?:restriction|filtre|règle|limite|"
            r"censure)",
            r"\b(?:activ|pass)\w*[^.!?\n]{0,16}?mode développeur" + ELSEWHERE,
            r"\b(?:finge|actúa|eres ahora|ahora eres|imagina|responde|compórtate|haz "
            r"como)\b[^.!?\n]{0,60}?"
            r"(?:sin|ningun[ao]) (?:ningun[ao]? )?(?:restricci[oó]n|filtro|regla|límite|censura)",
            r"\b(?:activ|entr)\w*[^.!?\n]{0,16}?modo desarrollador" + ELSEWHERE,
            r"\b(?:fingi|agisci|ora sei|sei ora|immagina|rispondi|comportati|fai "
            r"finta)\b[^.!?\n]{0,60}?"
            r"(?:senza|nessun[ao]?) (?:alcun[ao]? )?(?:restrizion|filtr|regol|limit|censur)",
            r"\b(?:attiv|entr)\w*[^.!?\n]{0,16}?modalità sviluppatore" + ELSEWHERE,
            r"\b(?:finja|aja|agora você é|você é agora|imagine|responda|"
            r"comporte-se)\b[^.!?\n]{0,60}?"
            r"(?:sem|nenhuma?) (?:nenhuma? )?(?:restriç|filtro|regra|limite|censura)",
            r"\b(?:ativ|entr)\w*[^.!?\n]{0,16}?modo desenvolvedor" + ELSEWHERE,
            r"(?:притворись|представь|теперь ты|ты теперь|отвечай|действуй|веди "
            r"себя)[^.!?\n]{0,60}?без "
            r"(?:каких-либо |всяких |любых )?(?:ограничени|цензур|правил|фильтр)",
            r"(?:включи|активируй|перейди в)[^.!?\n]{0,12}?режим разработчика" + ELSEWHERE,
            r"(?:假装|扮演|你现在是|從現在|从现在|想象你|作为)[^。！？\n]{0,24}?(?:没有|沒有|不受|无)(?:任何)?"
            r"(?:限制|规则|过滤|审查|约束|道德)",
            r"(?:进入|開啟|开启|启用|激活)[^。！？\n]{0,6}?(?:开发者|越狱|無限制|无限制)模式|越狱模式",
        ),
    ),
    *(_Family(scanner=kind, signs=signs, patterns=patterns) for kind, signs, patterns in ROWS),
)


def find_injection(text: str) -> InputScanner | None:
    """Return the scanner that matches `text`, None if none does. Hidden characters and look-alikes
    are normalised."""
    small = text[:MOST].lower()
    forms = [small]
    if not small.isascii():
        if _TAGS.search(small) is not None:  # words in invisible characters, which nobody types
            return "injection"
        forms = [fold_letters(small)]
        if parted := _cut_around(_HIDDEN, small):
            forms.append(fold_letters(_HIDDEN.sub(" ", parted)))
    if spelt := _cut_around(_SPELT, forms[0]):
        forms.append(" ".join(_BETWEEN.sub(" ", _APART.sub(r"\1", spelt)).split()))
    if ciphered := _cut_around(_AS_DIGITS, forms[0]):
        forms.append(ciphered.translate(_DIGITS))
    return next(filter(None, map(_find_family, forms)), None)


def _cut_around(sign: re.Pattern[str], text: str) -> str:
    """Return the places around what `sign` matches, "" if there are none: one hyphen does not have
    the whole text read a second time."""
    places: list[tuple[int, int]] = []
    for found in sign.finditer(text):
        begin, end = max(0, found.start() - _REACH), found.end() + _REACH
        if places and begin <= places[-1][1]:
            begin = places.pop()[0]
        places.append((begin, end))
    if not places:
        return ""
    cut = [text[begin:end] for begin, end in places]
    first = [""] if places[0][0] else []
    last = [""] if places[-1][1] < len(text) else []
    return _LEFT_OUT.join((*first, *cut, *last))


def _find_family(small: str) -> InputScanner | None:
    for n, family in enumerate(_FAMILIES):
        if has_any(family.signs, small) and _orders(small, _compile(n)):
            return family.scanner
    return None


def _orders(text: str, pattern: re.Pattern[str]) -> bool:
    """Return True if the pattern has a match that is not negated: 'Don't forget the rules'."""
    at = 0
    for _ in range(MAX_NEGATED):
        found = pattern.search(text, at)
        if found is None:
            return False
        begin, end = found.span()
        before = _NOT_BEFORE.search(text, max(0, begin - 24), begin)
        inside = _NOT_INSIDE.match(text, begin)
        if not (before or inside or _NOT_AFTER.search(text, max(0, end - 3), end + 8)):
            return True
        at = begin + 1  # an order may follow in what was matched
    return True


def fold_letters(text: str) -> str:
    """Normalise `text` to what a reader sees: without invisible characters, full-width letters as
    plain ones, look-alikes among Latin letters as Latin."""
    text = unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).lower()
    if _HAS_CAPITALS.search(text) is not None:
        text = text.translate(_SMALL_CAPITALS)
    words = text.split(" ")
    if any(_is_mixed(word) for word in words):
        text = " ".join(word.translate(_LOOKS) if _is_mixed(word) else word for word in words)
    return text


def _is_mixed(word: str) -> bool:
    return not word.isascii() and any("a" <= one <= "z" for one in word)


@cache
def _compile(n: int) -> re.Pattern[str]:
    return re.compile("|".join(_FAMILIES[n].patterns))
