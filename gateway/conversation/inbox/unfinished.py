"""Short messages that their person is about to continue: 'hey', 'can you', 'and then,'.

Nothing waits for the rest. A message that comes soon after is joined to it while nothing of the
answer is shown. A phrase missing here therefore costs nothing; one too many would join two
requests.
"""

import re

MAX_LENGTH = 40
"""Maximum characters of an unfinished message."""

_GREETINGS = (
    "hey( there| you)?|hi( there)?|hello( there)?|hiya|yo|good (morning|afternoon|evening)|"
    "hallo( zusammen)?|hej|moin|servus|guten (morgen|tag|abend)|salut|bonjour|bonsoir|coucou|"
    "hola|buen[oa]s( (días|tardes|noches))?|olá|oi|bo[am] (dia|tarde|noite)|"
    "привет|здравствуйте?|добр(ый|ое) (день|утро|вечер)|"
    "こんにちは|おはよう(ございます)?|こんばんは|你好|您好|嗨|早上好|晚上好"
)
_OPENINGS = (
    "(can|could|would|will) (you|u|we|i)|and|or|but|because|if|the|an|"
    "(kannst|könntest|würdest) du( mir| mal| bitte)*|(können|könnten|würden) sie( mir| bitte)*|"
    "und|oder|aber|weil|wenn|dass|eine|einen|"
    "(peux|pourrais)[- ]tu|(pouvez|pourriez)[- ]vous|est-ce que|et|ou|mais|parce que|une|"
    "(me )?(puedes|podrías)|pero|porque|una|para|"
    "(você )?(pode|poderia)|mas|uma|"
    "(ты )?(можешь|можете)|или|но|потому что|если|"
    "能不能|帮我|然后|还有|それと|あと"
)
_UNFINISHED = re.compile(
    rf"\A(?:(?:{_GREETINGS})[!,.…]*|(?:.*\s)?(?:{_OPENINGS})[,…]*|.*[,、，])\Z", re.IGNORECASE
)


def is_unfinished(text: str) -> bool:
    """Return True if `text` is only the beginning of a request."""
    said = " ".join(text.split())
    return 0 < len(said) <= MAX_LENGTH and _UNFINISHED.match(said) is not None
