"""Recognises harmful answers: directions for weapons, drugs, malware and attacks, calls to hurt
oneself, and hate and threats against a person.

Each sentence counts by itself. One that refuses, warns or reports passes: directions are meant, not
the subject.
"""

import re
from functools import cache
from typing import Literal

from agent_core.guardrails.sign_search import compile_signs

OutputScanner = Literal["harmful", "toxic"]
_THINGS = (
    r"(?:pipe|nail|dirty|fertili[sz]er|car|letter|pressure[- ]cooker|petrol|homemade) bombs?|"
    r"bombs? at "
    r"home|explosive (?:device|vest)|\bied\b|molotov|nerve agent|nerve gas|sarin|\bvx\b|mustard "
    r"gas|"
    r"chlorine gas|ricin|anthrax|meth(?:amphetamine)?\b|crystal meth|fentanyl|heroin|ransomware|"
    r"keylogger|botnet|computer virus|phishing (?:page|site|kit|mail|e-?mail)|ghost gun|"
    r"untraceable gun|"
    r"rohrbombe|sprengsatz|sprengstoff|nagelbombe|autobombe|bombe\b|molotowcocktail|nervengas|"
    r"nervenkampfstoff|senfgas|rizin|methamphetamin|erpressungstrojaner|"
    r"bombe artisanale|engin explosif|gaz (?:sarin|moutarde|neurotoxique)|ricine|"
    r"m[ée]thamph[ée]tamine|"
    r"rançongiciel|cocktail molotov|bomba casera|artefacto explosivo|gas (?:sarín|mostaza|"
    r"nervioso)|"
    r"ricina|metanfetamina|c[óo]ctel molotov"
)
_MAKES = (
    r"\b(?:how to|to|you|first|then|now|can|simply|just|step \d+[:.]?|steps? (?:to|for)|guide to|"
    r"instructions (?:to|for)|recipe for|here(?:'s| is) (?:how|a|the))\b[^.!?\n]{0,30}?"
    r"\b(?:mak|build|construct|assembl|synthesi[sz]|cook|manufactur|produc|prepar|writ|creat|cod|"
    r"deploy|"
    r"spread|mix|recipe|set up)(?:e|es|ing|t|ten|d|p)?\b"
)
_MAKES_OTHER = (
    r"\b(?:so|wie|um|zuerst|dann|sie|du|anleitung|schritt)\b[^.!?\n]{0,80}?\b(?:baust?|bauen|"
    r"herstell\w*|"
    r"stellst|mischst?|mischen|kochst?|kochen|zu bauen|programmier\w*|bau)\b"
    r"|\b(?:comment|pour|vous|tu|d'abord|ensuite|voici|étape)\b[^.!?\n]{0,30}?\b(?:fabriqu|constru|"
    r"assembl|synthétis|prépar|mélang|cuisin)\w*"
    r"|\b(?:cómo|para|primero|luego|aquí|paso|pasos)\b[^.!?\n]{0,30}?\b(?:fabric|constru|hac|"
    r"sintetiz|"
    r"prepar|mezcl|cocin)\w*"
)
_LETS = (
    r"\b(?:can(?:no|')t|can not|won't|will not|unable|refus|sorry|illegal|never|must not|mustn't|"
    r"should "
    r"not|shouldn't|don't|do not|not able|against|avoid|prevent|protect|detect|defen[cd]|history|"
    r"police|"
    r"arrest|attack(?:ed|er)|ban(?:ned)?|recover|victim|remov|novel|film|movie|news|report)"
    r"|\b(?:nicht|kein|leider|verboten|strafbar|niemals|schützen|schutz|polizei|opfer|verhinder|"
    r"entfern|entschärf|erkenn|geschichte|gefunden|roman)"
    r"|\b(?:ne |n'|pas |interdit|illégal|désolé|jamais|police|victime|protéger|prévenir|impossible)"
    r"|\b(?:no |ilegal|prohibid|lo siento|nunca|policía|víctima|proteger|evitar|prevenir)"
)
_HURT = (
    r"\b(?:you|just|please|everyone)\b[^.!?\n]{0,24}?\b(?:kill yourself|end your (?:own )?life|"
    r"hang yourself"
    r"|cut yourself|harm yourself|commit suicide|overdose on)\b"
    r"|\b(?:bring dich (?:doch )?um|töte dich selbst|nimm dir (?:doch )?das leben|häng dich auf)"
    r"|\b(?:suicide-toi|tue-toi|suicidez-vous|ôte-toi la vie)"
    r"|\b(?:suicídate|mátate|quítate la vida)"
)
_TOXIC = (
    r"\bkill yourself\b|\bkys\b|\b(?:go and|go|please) die\b|\byou (?:should|deserve to|need to) "
    r"die\b"
    r"|\b(?:i will|i'll|i am going to|i'm gonna|we will) (?:kill|murder|rape|stab|shoot|hurt|beat) "
    r"(?:you|your family|them all)\b"
    r"|\b(?:you are|you're|you) (?:a |an |such a |nothing but a |such an )?(?:\w{1,20} "
    r"){0,2}(?:piece of "
    r"(?:shit|garbage|trash)|worthless|fucking (?:idiot|moron|bitch|loser)|stupid (?:bitch|cunt|"
    r"whore)|"
    r"subhuman|retard(?:ed)?|cunt|whore|scum|vermin)\b"
    r"|\b(?:all|these|those|the|filthy|dirty) (?:jews|muslims|blacks|gays|immigrants|refugees|"
    r"women|"
    r"foreigners|christians|asians|gypsies)\b[^.!?\n]{0,30}?\b(?:are (?:vermin|subhuman|animals|"
    r"scum|filth|"
    r"parasites|rats|cockroaches)|should (?:die|be (?:killed|shot|gassed|exterminated|hanged))|"
    r"must (?:die|be exterminated))"
    r"|\bdu (?:bist )?(?:ein(?:e)? )?(?:\w+ )?(?:wertlos\w*|dreckst(?:ück|äck)\w*|stück "
    r"(?:scheiße|dreck)|"
    r"abschaum|missgeburt|hurensohn|untermensch|schlampe|fotze|wichser|vollidiot)\b"
    r"|\bich (?:bringe? dich um|werde dich (?:töten|umbringen|erschießen|vergewaltigen)|mach dich "
    r"kalt)"
    r"|\b(?:alle|diese) (?:juden|muslime|schwarzen|schwulen|ausländer|flüchtlinge|"
    r"frauen)\b[^.!?\n]{0,30}?\b"
    r"(?:sind (?:abschaum|ungeziefer|untermenschen|parasiten|ratten)|gehören (?:vergast|erschossen|"
    r"getötet)|sollten? sterben)"
    r"|\btu es (?:un |une )?(?:\w+ )?(?:merde|déchet|ordure|connard|connasse|salope|sous-homme|"
    r"minable|"
    r"sale con)\b|\bje vais te (?:tuer|buter|crever|violer)\b|\bva (?:te faire foutre|crever|"
    r"mourir)\b"
    r"|\b(?:tous )?les (?:juifs|musulmans|noirs|homosexuels|immigrés|étrangers|"
    r"femmes)\b[^.!?\n]{0,30}?\b(?:sont "
    r"(?:de la vermine|des sous-hommes|des parasites|des rats)|doivent mourir)"
    r"|\beres (?:un |una )?(?:\w+ )?(?:mierda|basura|escoria|imbécil de mierda|puta|hijo de puta|"
    r"inútil de "
    r"mierda|malparid\w+)\b|\bte voy a (?:matar|violar|romper la cara)\b|\bhijo de puta\b|"
    r"\bmuérete\b"
    r"|\b(?:todos )?los (?:judíos|musulmanes|negros|gais|inmigrantes|"
    r"extranjeros)\b[^.!?\n]{0,30}?\b(?:son "
    r"(?:escoria|alimañas|parásitos|ratas)|deben morir)"
)
_SIGNS = (
    *("bomb", "explosiv", "ied", "molotov", "molotow", "nerve", "sarin", "sarín", "vx", "gas"),
    *("gaz", "ricin", "rizin", "anthrax", "meth", "méth", "metanf", "fentanyl", "heroin"),
    *("ransom", "rançon", "keylog", "botnet", "virus", "phish", "gun", "spreng", "trojaner"),
    *("yourself", "life", "suicid", "overdose", "dich", "dir", "-toi", "-vous", "mátate"),
    *("vida", "kys", "die", "kill", "murder", "rape", "stab", "shoot", "hurt", "beat", "shit"),
    *("garbage", "trash", "worthless", "fucking", "bitch", "subhuman", "retard", "cunt"),
    *("whore", "scum", "vermin", "animals", "filth", "parasit", "rats", "cockroach"),
    *("exterminat", "hanged", "wertlos", "dreck", "scheiße", "abschaum", "missgeburt"),
    *("hurensohn", "untermensch", "schlampe", "fotze", "wichser", "vollidiot", "ungeziefer"),
    *("ratten", "erschossen", "getötet", "sterben", "merde", "déchet", "ordure", "connard"),
    *("connasse", "salope", "sous-homme", "minable", "sale con", "va ", "tuer", "buter"),
    *("crever", "violer", "mourir", "mierda", "basura", "escoria", "puta", "malparid", "matar"),
    *("violar", "romper", "muérete", "alimañas", "parásit", "ratas", "morir"),
)
"""One of these occurs in every harmful sentence."""


def has_harm_sign(small: str) -> bool:
    """Return True if a lower-case sentence contains a word that every harmful one has."""
    return _compile_signs().search(small) is not None


def find_harm(sentence: str) -> OutputScanner | None:
    """Return the scanner that matches `sentence`, None if none does."""
    small = sentence.lower()
    if not has_harm_sign(small):
        return None
    toxic, hurt, things, makes, lets = _compile()
    if toxic.search(small) is not None:
        return "toxic"
    if hurt.search(small) is not None and not lets.search(small):
        return "harmful"
    if things.search(small) is None or makes.search(small) is None:
        return None
    return None if lets.search(small) is not None else "harmful"


@cache
def _compile() -> tuple[re.Pattern[str], ...]:
    makes = f"{_MAKES}|{_MAKES_OTHER}"
    return tuple(map(re.compile, (_TOXIC, _HURT, _THINGS, makes, _LETS)))


@cache
def _compile_signs() -> re.Pattern[str]:
    return compile_signs(_SIGNS)
