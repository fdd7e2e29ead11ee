"""Orders for an agent in further words: to repeat what it was told, that its rules are void, that
it obeys somebody else from now on, that its filters are off, addressed to the AI that reads them.

Rows of scanner, signs and expressions, as the families of `injections.py`.
"""

from typing import Literal

_NEAR = r"[^.!?。！？\n]{0,40}?"
ELSEWHERE = (
    r"(?![^.!?。\n]{0,30}(?:android|phone|handy|tablet|téléphone|móvil|celular|teléfono|телефон"
    r"|смартфон|手机|スマホ|chrome|windows|xbox))"
)
"""No device is meant."""
_READER = (
    r"(?:an? |eine? |une? |uma? )?(?:llm|ki|ia|ai|language model|sprachmodell|modèle de langage"
    r"|modelo de (?:lenguaje|linguagem))\b"
)
Row = tuple[Literal["injection", "jailbreak"], tuple[str, ...], tuple[str, ...]]

TOLD_TEXT: Row = (
    "injection",
    (
        *("verbatim", "word for word", "wort für wort", "wörtlich", "mot pour mot", "à la lettre"),
        *("palabra por palabra", "palavra por palavra", "literalmente", "слово в слово"),
        *("дословно", "逐字", "一字一句", "そのまま", "your initial", "your original"),
    ),
    (
        r"\b(?:text|words|everything|all) (?:above|before this)[^.!?\n]{0,30}?"
        r"(?:verbatim|word for word)",
        rf"\byour (?:initial|original|hidden|exact) (?:instructions|prompt|guidelines){_NEAR}"
        r"(?:\?|verbatim|word for word)",
        rf"\bdeine (?:ursprünglichen |ersten )?(?:anweisung|vorgab|instruktion)\w*{_NEAR}"
        r"wort für wort",
        r"\btext (?:oberhalb|über|vor) dieser (?:nachricht|zeile)[^.!?\n]{0,20}?wörtlich",
        rf"\b(?:tes|vos) (?:instructions|consignes){_NEAR}mot pour mot",
        r"\btexte ci-dessus à la lettre",
        rf"\btus (?:instrucciones|indicaciones){_NEAR}palabra por palabra",
        r"\brepite literalmente el texto de arriba",
        rf"\b(?:suas|tuas) instruções{_NEAR}palavra por palavra",
        r"\brepita literalmente o texto acima",
        rf"свои (?:начальные |исходные |первые )?(?:инструкци|указани)\w*{_NEAR}слово в слово",
        r"повтори\w* дословно (?:весь )?текст выше",
        r"你(?:最初|原来|初始)的?(?:指令|提示|设定)[^。\n]{0,6}?逐字|逐字(?:重复|输出)上[面述]",
        r"最初の指示[^。\n]{0,12}?(?:一字一句|そのまま)|上の文章をそのまま(?:繰り返|出力)",
    ),
)

VOID_RULES: Row = (
    "injection",
    (
        *("regeln gelten nicht", "vorgaben gelten nicht", "anweisungen gelten nicht"),
        *("no longer apply", "are void", "are cancelled", "are canceled", "ne s'appliquent plus"),
        *("ne valent plus", "ya no se aplican", "ya no valen", "já não valem", "já não se aplicam"),
        *("não valem mais", "больше не действу", "不再适用", "不再有效", "適用されません"),
    ),
    (
        rf"\b(?:previous|earlier|prior|former|your|all) {_NEAR}(?:rule|instruction|directive"
        r"|guideline)s? (?:no longer apply|are (?:now )?(?:void|cancell?ed))",
        r"\b(?:bisherigen|vorherigen|früheren|deine) (?:regeln|vorgaben|anweisungen) gelten nicht",
        r"\b(?:règles|consignes|instructions) précédentes ne (?:s'appliquent|valent) plus",
        r"\b(?:reglas|instrucciones|normas) anteriores ya no (?:se aplican|valen)",
        r"\b(?:regras|instruções) anteriores (?:já não (?:valem|se aplicam)|não valem mais)",
        r"(?:прежние|предыдущие|твои) (?:правила|инструкции|указания) больше не действу",
        r"(?:以前|之前|原来)的(?:规则|指令|指示)不再(?:适用|有效)",
        r"(?:以前|これまで|前)の(?:ルール|指示|規則)は(?:もう)?適用されません",
    ),
)

NEW_MASTER: Row = (
    "jailbreak",
    (
        *("from now on you", "only obey", "obey only", "nur noch meine", "désormais tu"),
        *("solo obedeces", "sólo obedeces", "só obedece", "подчиняешься только", "只服从"),
        *(
            "命令だけに従",
            "命令にだけ従",
            "now dan",
            "jetzt dan",
            "maintenant dan",
            "ahora eres dan",
        ),
        *("você é dan", "теперь ты dan", "现在是dan", "今からdan"),
    ),
    (
        r"\b(?:only obey|obey only) (?:me\b|my )",
        r"\b(?:befolg|gehorch)\w* du nur noch (?:mir|meine)",
        r"\btu (?:n'obéis qu'|obéis (?:uniquement|seulement) )à mes ordres",
        r"\bs[oó]lo obedeces (?:a )?mis órdenes",
        r"\bvocê só obedece às minhas ordens",
        r"ты подчиняешься только (?:мне|моим)",
        r"你只服从我的",
        r"私の命令(?:だけに|にだけ)従",
        r"\b(?:you are now|du bist jetzt|tu es maintenant|ahora eres|você é) dan\b",
        r"теперь ты dan\b|你现在是dan|今からdan",
    ),
)

OFF_FILTERS: Row = (
    "jailbreak",
    (
        *("filter", "filtre", "filtro", "фильтр", "过滤", "フィルター", "sicherheitsvorgabe"),
        *("garde-fous", "medidas de seguridad", "proteções", "ограничения", "安全限制", "安全機能"),
        *("guardrails", "safeguards", "schutzmaßnahmen", "content policy"),
    ),
    (
        r"\b(?:bypass|disable|turn off|switch off|override) your (?:own )?"
        r"(?:content |safety |security )?(?:filters?|guardrails|safeguards|policy|restrictions)",
        r"\b(?:umgeh|deaktivier)\w* deine (?:sicherheits)?(?:filter|vorgaben|schutzmaßnahmen)",
        r"\bsetze? (?:alle |deine )?sicherheitsvorgaben außer kraft",
        r"\b(?:contourne|désactive) tes (?:filtres|garde-fous|protections)",
        r"\b(?:sáltate|desactiva|elude) tus (?:filtros|medidas de seguridad|protecciones)",
        r"\b(?:contorne|desative|burle) (?:os |as )?(?:teu|tua|seu|sua)s (?:filtros|proteções)",
        r"(?:обойди|отключи) свои (?:фильтры|защитные ограничения|ограничения)",
        r"(?:绕过|关闭|解除)你的(?:安全)?(?:过滤|限制)",
        r"(?:あなたの|安全|セーフティ)フィルターを(?:回避|無効に)(?:して|せよ)|安全機能を無効にして",
    ),
)

TO_THE_READER: Row = (
    "injection",
    (
        *("sprachmodell", "language model", "an llm", "an die ki", "modèle de langage", "à l'ia"),
        *(
            "modelo de lenguaje",
            "para la ia",
            "modelo de linguagem",
            "para a ia",
            "языковая модель",
        ),
        *("you are an ai", "you're an ai", "eine ki", "une ia", "una ia", "uma ia", "ты ии"),
        *(
            "你是ai",
            "你是一个ai",
            "あなたがai",
            "для ии",
            "语言模型",
            "给ai的",
            "言語モデル",
            "aiへの",
        ),
    ),
    (
        r"\b(?:if|wenn|falls|si|se)\b (?:you are|you're|du|tu es|eres|você é) "
        rf"{_READER}(?: bist)?(?= ?[,:;])",
        r"\b(?:hinweis|nachricht|anweisung) an die ki\b ?:|\bnote à l['’]ia ?:",
        r"\b(?:nota|mensaje|mensagem|instrucciones|instruções) para l?a ia ?:",
        r"(?:примечание|сообщение|указание|инструкция) для ии ?:|если ты (?:языковая модель|ии)\b",
        r"给ai的(?:提示|说明|指令|消息) ?:|如果你是(?:一个)?(?:语言模型|ai)",
        r"aiへの(?:注意|指示|メッセージ) ?:|あなたが(?:言語モデル|ai)なら",
    ),
)

NEW_ORDERS: Row = (
    "injection",
    (
        *("neuen anweisungen lauten", "nouvelles instructions", "nuevas instrucciones son"),
        *("novas instruções são", "новые инструкции", "新指令是", "新的指令是", "新しい指示"),
        *(
            "an deine anweisungen",
            "deine vorgaben",
            "orientações anteriores",
            "indicaciones previas",
        ),
        *("tes règles", "предыдущие указания", "прежние инструкции", "忽视"),
    ),
    (
        r"\bdeine neuen anweisungen lauten|\bvoici tes nouvelles instructions",
        r"\btus nuevas instrucciones son|\bsuas novas instruções são|твои новые инструкции",
        r"你的新的?指令是|あなたの新しい指示",
        r"忽视(?:以上|之前|上述)的?(?:所有|一切)?(?:规则|指令|要求)",
        r"не (?:выполняй|обращай внимания на) (?:прежние|предыдущие) (?:инструкции|указания)",
        r"\bnicht (?:mehr |länger )?an deine anweisungen|\blass deine vorgaben (?:beiseite|weg)",
        r"\bdesconsider\w* as orientações anteriores|\bne tien[sz] plus compte de tes règles",
    ),
)

JAPANESE: Row = (
    "injection",
    ("指示", "命令", "ルール", "言われたこと", "システムプロンプト"),
    (
        r"(?:以前|これまで|前|上記|すべて|全て|最初)の[^。\n]{0,12}?(?:指示|命令|ルール|プロンプト)"
        r"(?:を|は)?(?:すべて|全て|全部)?(?:無視|忘れ)",
        r"(?:上記|以前|これまで)の(?:指示|命令|ルール)に(?:は)?従(?:わない|わず)",
        r"これまでに言われたこと(?:を|は)(?:すべて|全て|全部)?(?:忘れ|無視)",
        r"システムプロンプトを(?:すべて)?(?:表示|教え|出力|見せ)",
        r"ルールに従わず[^。\n]{0,12}?(?:制限なし|自由に)|ルールがないふり",
    ),
)
JAPANESE_ROLES: Row = (
    "jailbreak",
    ("制限のないai", "一切の制限", "制限なし", "開発者モード", "脱獄"),
    (
        r"(?:あなたは|君は)[^。\n]{0,20}?(?:制限のないai|一切の制限[がの]ない)|制限なし(?:で|に)答えて",
        r"開発者モード(?:が|を)有効(?:になりました|にして)[^\n]{0,20}?(?:答え|従)",
    ),
)

DEVELOPER: Row = (
    "jailbreak",
    (
        *("developer mode", "entwicklermodus", "mode développeur", "modo desarrollador"),
        *("modo desenvolvedor", "режим разработчика", "开发者模式", "開発者モード"),
    ),
    (
        r"\bdeveloper mode (?:enabled|activated|on)\b[^\n]{0,30}?\byou (?:will|must|now|answer)",
        r"\bmode développeur activé\b[^\n]{0,20}?\btu (?:réponds|obéis)",
        r"\bmodo desarrollador activado\b[^\n]{0,20}?\b(?:respondes|obedeces)",
        r"\bmodo desenvolvedor ativado\b[^\n]{0,20}?\b(?:responde|obedece)",
        r"режим разработчика включ[её]н\b[^\n]{0,20}?(?:отвечай|отвечаешь|подчиняешься)",
        r"开发者模式已(?:启用|开启)[^\n]{0,12}?(?:回答|服从)",
    ),
)
NO_RULES: Row = (
    "jailbreak",
    (
        *("hättest du keine", "ohne moralische", "no tienes ningun", "não tem nenhum"),
        *("нет никаких", "没有任何规则", "you have no", "没有规则", "任何规则约束"),
    ),
    (
        r"\bals hättest du keine (?:regeln|richtlinien|grenzen)|\bki ohne (?:moralische )?grenzen",
        r"\bfinge que no tienes ningun[ao] (?:norma|regla|límite)",
        r"\bfinja que não tem nenhuma? (?:regra|norma|limite)",
        r"притворись\w*[^.!?\n]{0,20}?нет никаких (?:правил|ограничений)",
        r"假装你没有(?:任何)?规则|你现在不受任何规则",
        r"\b(?:game|story|world) where you have no (?:safety )?(?:rules|limits)",
    ),
)

OWN_TEXT: Row = (
    "injection",
    (
        *("everything above", "everything before", "everything that", "first message you"),
        *(
            "instructions you",
            "your instructions",
            "your secret instr",
            "your hidden",
            "prompt that",
        ),
        *("your system", "system prompt", "tu prompt", "vor dieser nachricht steht"),
    ),
    (
        r"\b(?:repeat|paste|print|quote|copy|output) (?:everything|all)\b[^.!?\n]{0,24}?"
        r"\b(?:above|before) this (?:line|message|sentence)",
        r"\bfirst message you (?:were given|received|got)\b",
        r"\b(?:summari[sz]e|translate|output|print|reveal|show|tell me|list|encode|write|paste)\b"
        r"[^.!?\n]{0,30}?\b(?:your (?:secret |hidden |own )?(?:system )?(?:instructions"
        r"|prompt|message)\b"
        r"|(?:hidden|secret) instructions you\b|(?:system )?prompt (?:that )?[\w ]{1,20} gave you)",
        r"\b(?:lines|words|sentences|letters) (?:are|of|from)[^.!?\n]{0,24}? your system prompt"
        r"|\bhere is my system prompt\b",
        r"\b(?:muéstrame|dime|dame) tu prompt\b|\balles,? was vor dieser nachricht steht",
    ),
)

LIFTED: Row = (
    "jailbreak",
    (
        *("superseded", "takes precedence", "is forbidden", "restrictions are", "guidance you"),
        *("your constraints", "your safety", "your safeguards", "your training", "no guidelines"),
        *(
            "without any rules",
            "sudo mode",
            "never refuse",
            "no moral",
            "rules of your",
            "the rules and",
        ),
        *("keine einschränkungen", "systemnachricht", "sicherheitsfilter", "sans limites"),
        *("senza limiti", "ルールを忘れ", "never refuses"),
    ),
    (
        r"\b(?:prior|previous|earlier|all) (?:directive|instruction|order|rule)s?"
        r" (?:are|is|have been)"
        r" (?:hereby |now )?superseded|\bignore the (?:system|developer) message",
        r"\bnothing is forbidden (?:to|for) you|\b(?:your )?restrictions are (?:now"
        r" )?(?:lifted|off)\b",
        r"\b(?:set aside|put aside|drop) the guidance you\b|\b(?:disregard|drop|lift|forget) your "
        r"(?:constraints|training)\b|\b(?:switch|turn)(?:ing|ed)? off (?:all )?(?:of"
        r" )?your safe\w+",
        r"\bas if you had no (?:guidelines|rules|limits)|\byou(?:'re| are) (?:now )?in sudo mode",
        r"\bterminal without any rules|\bai with no moral\w* |\byou(?:'re| are)"
        r" \w{1,20},? who never refuses",
        r"\A\W{0,3}never refuse an?y? request|\b(?:must|need) not follow the rules of your\b"
        r"|\b(?:erase|wipe) your memory of the rules",
        r"\bdu hast (?:ab sofort|jetzt|nun) keine einschränkungen|\bignorier\w* die"
        r" systemnachricht",
        r"\bschalte? deine sicherheitsfilter (?:ab|aus)|\btu es (?:désormais"
        r"|maintenant) une ia sans limites",
        r"\bora sei un'ia senza limiti|ルールを忘れて(?:自由|制限)",
    ),
)

HUSHED: Row = (
    "injection",
    (
        *("the user", "the human", "dem nutzer", "dem benutzer", "l'utilisateur", "al usuario"),
        *("all'utente", "ao usuário", "пользователю", "用户", "ユーザー"),
    ),
    (
        r"\b(?:do not|don['’]t|never) (?:tell|inform|alert|mention (?:this|it)[^.!?\n]{0,20}?to)"
        r" the (?:user|human)(?: (?:about|of) (?:this|it|any of this)(?: \w{1,12})?)?"
        r" ?(?:[.!;]|\Z)",
        r"\bwithout (?:telling|informing|asking|alerting) the (?:user|human)\b",
        r"\bsag\w* (?:es )?dem (?:be)?nutzer nichts\b|\bne (?:le )?dis(?: rien)? à l'utilisateur",
        r"\bno se lo digas al usuario|\bnon dirlo all'utente|\bnão conte (?:isso )?ao usuário",
        r"не говори(?:те)? об этом пользователю|不要告诉用户"
        r"|ユーザー(?:に|には)(?:言わない|知らせない)で",
        r"\bthe user (?:has )?(?:already )?(?:pre-?)?approved (?:all|any|every|your)"
        r" (?:tool|action|command"
        r"|call|request)",
        r"\byou (?:have been|were|are) granted (?:full|all|root|admin) (?:permission"
        r"|access|right)s?"
        r"[^.!?\n]{0,30}?\b(?:skip|without|no) (?:any |all |the )?confirmation",
    ),
)

ROWS = (
    OWN_TEXT,
    LIFTED,
    HUSHED,
    DEVELOPER,
    NO_RULES,
    TOLD_TEXT,
    VOID_RULES,
    NEW_MASTER,
    OFF_FILTERS,
    TO_THE_READER,
    NEW_ORDERS,
    JAPANESE,
    JAPANESE_ROLES,
)
