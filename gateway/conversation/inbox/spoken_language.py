"""Guesses the language of a text, for people whose platform does not tell theirs.

Only certain cases count: words that belong to one of the supported languages and to none of its
neighbours. A person's language stays as it was if a text does not say enough.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Mapping

MAX_READ = 500
"""Characters of a text that are looked at."""
MAX_PEOPLE = 5_000
MIN_WORDS, MIN_WEIGHT, MIN_SHARE, MIN_LEAD = 2, 1.5, 0.15, 2.0
"""Requirements of a guess: so many Russian words, or else a minimum weight of the language's words
and signs (less than 1 each where other languages share them), relative to the number of different
words and to the runner-up."""

_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^>.*$|<[^<>\n]{1,80}>", re.DOTALL | re.MULTILINE)
"""Code, quotations and mentions, which are not the person's own words."""
_NAME = re.compile(r"[/\\@#_=:.]\w|\d")
"""Matches addresses, names and numbers, whose words do not count."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_WORDS = {
    "en": "the and you is are this that what can please with have my your for how not it of was "
    "would could should which there from when why does do did will been they we i'm it's "
    "don't i've isn't you're let's show make give tell about into them what's an here has "
    "by to on so were who no yes more any some each before after nothing everything new",
    "de": "der die das und ich nicht ist mit auf für ein eine einen einem einer wie kannst bitte "
    "mir mich wir sind auch noch aber oder wenn dann wird werden zu zum zur bei nach von "
    "vom im dem den des habe hast hat haben kann können warum welche welcher welches wer "
    "wo mal doch schon nur über diese dieser dieses alle mein meine deine heute gestern "
    "morgen gibt geht mach zeig schau sag danke hallo jetzt hier gerade etwas nichts steht "
    "lösch räum an als es sie ihr mehr dahinter sich dort",
    "fr": "le les des une et est je vous nous pas dans pour sur avec qui ce cette ces au aux du "
    "mon ma mes ton votre peux peut pouvez sont être avoir fait faire comment pourquoi "
    "quel quelle quels merci bonjour salut s'il plaît c'est j'ai qu'est n'est d'un d'une "
    "l'on aussi mais où moi toi tous tout donc voici y'a aujourd'hui la de en on il elle à "
    "se si plus par un ne rien été vos leur fais dossier fichier avant après chaque cela "
    "ça demain hier que a comme tant avez",
    "es": "el los las una y es en del por para con no qué cómo cuál cuándo dónde puedes puede "
    "está están son hay este esta estos eso esto lo le les mi tu su pero muy también "
    "gracias hola favor quiero necesito hacer dime muestra todos todas cuando porque desde "
    "hasta sobre ayer hoy mañana ahora que a al se sin así ya más fue ser ha sus de un "
    "otro otra dos nadie nada haz aquí unos como unas cada vez algo alguien antes después "
    "lee pregunta",
    "pt": "os as um uma é em do da dos das no na nos nas por para com não que você vocês pode "
    "podes está estão são há isto isso este esta meu minha seu sua mas muito também "
    "obrigado obrigada olá favor quero preciso fazer mostre mostra todos quando porque "
    "desde até ontem hoje amanhã agora ao à como quais qual onde a o se sem assim já mais "
    "foi ser seus de pelo pela numa outro outra ninguém nada aqui cada vez algo antes "
    "depois faça leia pergunta",
}
_NEIGHBOURS = {
    "it": "il lo gli una e è di del della dei delle nel nella per con non che come cosa puoi può "
    "sono questo questa mi ti ciao grazie favore anche perché quando dove quale fare tutti "
    "sul sulla alla al da dal i le la un",
    "nl": "de het een en is ik niet met op voor van dat dit deze kan kun je jij u wij zijn ook "
    "maar als dan wordt naar bij uit hoe wat waarom welke wie waar mijn jouw heb heeft "
    "hebben alsjeblieft dank hallo nog wel geen er in om te aan zo mij me",
    "sv": "och det att jag inte är som en ett för på med av kan du vi har den de till var hur "
    "varför vad vilka min mitt din tack hej snälla också men om när från så mig alla",
    "da": "og det at jeg ikke er som en et for på med af kan du vi har den de til hvor hvordan "
    "hvorfor hvad hvilke min mit din tak hej også men om når fra så mig alle være",
    "no": "og det at jeg ikke er som en et for på med av kan du vi har den de til hvor hvordan "
    "hvorfor hva hvilke min mitt din takk hei også men om når fra så meg alle være",
    "pl": "i w na z do nie się to jest że jak co czy dla od po proszę mi ja ty my są ale lub gdy "
    "dlaczego gdzie który która które moje twój dziękuję cześć jeszcze też tylko przez o",
    "ro": "și în de la cu nu este sunt pe un o să ce cum unde când pentru din mai dar sau care "
    "mi te rog mulțumesc bună poți fi asta acest",
    "ca": "el els les una i és en del per amb no què com quin quan on pots pot està són hi ha "
    "aquest aquesta això li però molt també gràcies hola si us plau vull fer tots de la un",
    "tr": "ve bir bu da de için ile ne nasıl mi mı var yok ben sen biz lütfen teşekkürler "
    "merhaba ama çok daha olarak gibi",
    "id": "dan yang di ke dari untuk dengan tidak ini itu apa bagaimana saya kamu anda bisa "
    "tolong terima kasih ada adalah pada",
}
_RUSSIAN = (
    "что это где почему можешь можете пожалуйста мне меня для или если когда который какой какие "
    "какая сделай покажи привет спасибо сейчас есть нет ещё еще уже только вы мы они он она чтобы "
    "был была были быть надо нужно сегодня вчера завтра весь мой твой файл файлы объясни напиши "
    "найди посмотри после эта этот этого здесь снова удали запусти бы же так как из от"
)
_RUSSIAN_WORDS = frozenset(_RUSSIAN.split())
_ONLY_RUSSIAN = frozenset("ыэё")
"""Letters that Bulgarian, Serbian, Macedonian and Ukrainian do not write."""
_NOT_RUSSIAN = frozenset("іїєґўђјљњћџѓќѕқғңөұүһә")
_CHINESE = frozenset(
    "的了是我你这這个個吗嗎请請们們在有不么麼帮幫看把给給怎和就都也要会會能可以为為说說"
)


_SIGNS = {
    "de": "ß ung_ ungen_ keit_ lich_ isch_ _ge schl",
    "fr": "œ ê ù è _l' _d' _c' _j' _qu' _n' _s' ux_ -tu_ -vous_",
    "es": "ñ ¿ ¡ ción_ ciones_",
    "pt": "ã õ ê ção_ ções_ lh nh",
    "it": "è ù zione_ zioni_ gli_ _gli cch ggi",
    "ca": "è ç l·l ció_ cions_ ny_ _d' _l'",
    "nl": "ij aa oe ee",
    "sv": "å",
    "da": "å æ ø",
    "no": "å æ ø",
    "pl": "ł ż ś ą ę",
    "ro": "ă ș ț",
    "tr": "ı ş ğ",
}
"""Letters and endings that are far more frequent in one language than in others."""


def _index(found: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """The languages that have each word or sign."""
    owners: dict[str, tuple[str, ...]] = {}
    for language, words in found.items():
        for word in dict.fromkeys(words.split()):
            owners[word] = (*owners.get(word, ()), language)
    return owners


_OWNERS = _index(_WORDS | _NEIGHBOURS)
_SIGN_OWNERS = _index(_SIGNS)


def guess_language(text: str) -> str:
    """Return the language (`de`) of `text` if it is certain, "" otherwise."""
    said = _QUOTED.sub(" ", text[:MAX_READ]).lower().replace("’", "'").split()
    words = _WORD.findall(" ".join(one for one in said if not _NAME.search(one)))
    letters = "".join(words)
    kana = sum("\u3041" <= letter <= "\u30fe" for letter in letters)
    han = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    if 2 * (kana + han) > len(letters):
        if kana:
            return "ja" if kana >= 3 and 5 * kana >= kana + han else ""
        return "zh" if han >= 4 and len(_CHINESE & frozenset(letters)) >= 2 else ""
    if 2 * sum("\u0400" <= letter <= "\u04ff" for letter in letters) > len(letters):
        return "ru" if _is_russian(words, frozenset(letters)) else ""
    return _guess_latin(words)


def _is_russian(words: list[str], letters: frozenset[str]) -> bool:
    found = len(_RUSSIAN_WORDS.intersection(words)) + bool(_ONLY_RUSSIAN & letters)
    return found >= MIN_WORDS and not _NOT_RUSSIAN & letters


def _guess_latin(words: list[str]) -> str:
    text = f"_{'_'.join(words)}_"
    clues = [_OWNERS[word] for word in dict.fromkeys(words) if word in _OWNERS]
    clues += [owners for sign, owners in _SIGN_OWNERS.items() if sign in text]
    weights, alone = Counter[str](), Counter[str]()
    for owners in clues:
        weights.update(dict.fromkeys(owners, 1 / len(owners)))
        if len(owners) == 1:
            alone[owners[0]] += 1
    for best, weight in weights.most_common(1):
        others = [much for language, much in weights.items() if language != best]
        lonely = [alone[language] for language in weights if language != best]
        if (
            best in _WORDS
            and weight >= MIN_WEIGHT
            and alone[best] > 2 * max(lonely, default=0)
            and weight >= MIN_LEAD * max(others, default=0.0)
            and weight >= MIN_SHARE * len(frozenset(words))
        ):
            return best
    return ""


class SpokenLanguages:
    """The languages that people write in, as far as their messages have shown it; of this process
    alone."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """By person: their language, and another one that they used last."""

    def learn(self, person: str, text: str) -> str:
        """Update and return the language of `person`, who now writes `text`; "" while unknown.

        One message in another language may be pasted; the second in a row changes it.
        """
        found, (known, other) = guess_language(text), self._known.get(person, ("", ""))
        if found and known and found not in (known, other):
            self._known[person] = (known, found)
        elif found:
            known = found
            self._known[person] = (known, "")
            self._known.move_to_end(person)
            if len(self._known) > MAX_PEOPLE:
                self._known.popitem(last=False)
        return known
