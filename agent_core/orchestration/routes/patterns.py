r"""Patterns of requests with several steps, as data: one entry a language.

All entries are regular expressions, matched ignoring case. A word stands alone in languages with
spaces; `\w*` after a stem covers its endings.
"""

from msgspec import Struct


class Patterns(Struct, frozen=True, kw_only=True):
    """One language. `openers` begin a sequence that one of `followers` continues; two followers are
    a sequence too. `step`: the word before a step's number. `works`: kinds of work, of which
    several together make a task. `phrases`: enough by themselves. `spaced`: words are separated by
    spaces."""

    openers: tuple[str, ...]
    followers: tuple[str, ...]
    step: tuple[str, ...]
    works: tuple[str, ...]
    phrases: tuple[str, ...]
    spaced: bool = True


LANGUAGES: dict[str, Patterns] = {
    "en": Patterns(
        openers=(
            r"(?<!\bthe )(?<!\ba )(?<!\bmy )(?<!\bhis )(?<!\bher )(?<!\byour )(?<!\bour )"
            r"first(?:ly)?",
            r"to begin with",
            r"start by",
        ),
        followers=(
            r"(?<=, )(?:and )?then|(?<=and )then|(?<=[.;\n] )then",
            r"(?<=, )next|(?<=and )next|(?<=[.;\n] )next",
            r"after that",
            r"afterwards",
            r"finally",
            r"lastly",
        ),
        step=(r"step",),
        works=(
            r"analy[sz]e",
            r"compare",
            r"research",
            r"summari[sz]e",
            r"design",
            r"implement",
            r"deploy",
            r"refactor",
            r"migrate",
            r"evaluate",
            r"benchmark",
            r"visuali[sz]e",
            r"document(?= (?:the|it|how|what))",
        ),
        phrases=(
            r"analy[sz]e and (?:compare|summari[sz]e|visuali[sz]e)",
            r"research and (?:compare|write|summari[sz]e)",
            r"(?:build|set up|create) an? (?:\w+ ){0,3}(?:pipeline|workflow)",
            r"step[- ]by[- ]step plan",
            r"end[- ]to[- ]end",
        ),
    ),
    "de": Patterns(
        openers=(r"zuerst", r"als erstes", r"zunächst", r"erst(?= \w)", r"erstens"),
        followers=(
            r"danach",
            r"dann",
            r"anschließend",
            r"schließlich",
            r"zuletzt",
            r"zum schluss",
            r"am ende",
        ),
        step=(r"schritt",),
        works=(
            r"analysier\w*",
            r"vergleich\w*",
            r"recherchier\w*",
            r"fasse?n?\b.{1,80}\bzusammen",
            r"entwirf|entwerfen?",
            r"implementier\w*",
            r"migrier\w*",
            r"bewerte\w*",
            r"visualisier\w*",
            r"dokumentier\w*",
        ),
        phrases=(
            r"analysier\w* und (?:vergleich\w*|visualisier\w*)",
            r"recherchier\w* und (?:vergleich\w*|schreib\w*)",
            r"(?:baue?|erstelle?|richte) (?:mir |uns )?eine (?:\w+ ){0,3}(?:pipeline|\w*pipeline)",
            r"schritt[- ]für[- ]schritt[- ]plan",
        ),
    ),
    "fr": Patterns(
        openers=(r"d['’]abord", r"premièrement", r"commence par", r"commencez par"),
        followers=(r"puis", r"ensuite", r"après cela", r"enfin", r"finalement", r"pour finir"),
        step=(r"étape",),
        works=(
            r"analyse[rsz]?",
            r"compare[rsz]?",
            r"recherche[rsz]?",
            r"résume[rsz]?",
            r"conçois|concevoir|concevez",
            r"implémente[rsz]?",
            r"migre[rsz]?",
            r"évalue[rsz]?",
            r"visualise[rsz]?",
            r"documente[rsz]?",
        ),
        phrases=(
            r"analyse[rz]? et compare[rz]?",
            r"(?:construis|crée|construire|créer) un pipeline",
            r"plan étape par étape",
        ),
    ),
    "es": Patterns(
        openers=(r"primero", r"en primer lugar", r"empieza por", r"para empezar"),
        followers=(
            r"luego",
            r"después",
            r"a continuación",
            r"finalmente",
            r"por último",
            r"al final",
        ),
        step=(r"paso",),
        works=(
            r"analiz\w*",
            r"compar(?:a|ar|e|en|alos|alas)",
            r"investig\w*",
            r"resum\w*",
            r"diseñ\w*",
            r"implement\w*",
            r"migr(?:a|ar|e)",
            r"evalú\w*|evaluar",
            r"visualiz\w*",
            r"document(?:a|ar|e)",
        ),
        phrases=(
            r"analiza\w* y compar\w*",
            r"(?:construye|crea|construir|crear) (?:un|una) (?:\w+ ){0,2}(?:pipeline|canalización)",
            r"plan paso a paso",
        ),
    ),
    "pt": Patterns(
        openers=(r"primeiro", r"em primeiro lugar", r"comece por", r"para começar"),
        followers=(r"depois", r"em seguida", r"a seguir", r"por fim", r"finalmente", r"no final"),
        step=(r"passo", r"etapa"),
        works=(
            r"analis\w*",
            r"compar(?:e|ar|a)",
            r"pesquis\w*",
            r"resum\w*",
            r"projet(?:e|ar)",
            r"implement\w*",
            r"migr(?:e|ar)",
            r"avali\w*",
            r"visualiz\w*",
            r"document(?:e|ar)",
        ),
        phrases=(
            r"analis\w* e compar\w*",
            r"(?:construa|crie|construir|criar) um pipeline",
            r"plano passo a passo",
        ),
    ),
    "ru": Patterns(
        openers=(r"сначала", r"сперва", r"во-первых", r"для начала", r"прежде всего"),
        followers=(r"затем", r"потом", r"после этого", r"далее", r"наконец", r"в конце"),
        step=(r"шаг",),
        works=(
            r"проанализир\w*",
            r"сравни\w*",
            r"исследу\w*|изучи\w*",
            r"обобщи\w*|резюмир\w*",
            r"спроектир\w*",
            r"реализу\w*",
            r"перенес\w*",
            r"оцени\w*",
            r"визуализир\w*",
            r"задокументир\w*",
        ),
        phrases=(
            r"проанализир\w* и сравни\w*",
            r"(?:построй|создай|построить|создать)\w* (?:\w+ ){0,2}(?:пайплайн|конвейер)\w*",
            r"пошагов\w* план",
        ),
    ),
    "zh": Patterns(
        openers=(r"首先", r"第一步", r"先"),
        followers=(r"然后", r"接着", r"之后", r"随后", r"最后", r"再(?=[比写做整总画发生])"),
        step=(r"步骤",),
        works=(
            r"分析",
            r"比较|对比",
            r"调研|研究",
            r"总结|汇总",
            r"设计",
            r"实现",
            r"部署",
            r"迁移",
            r"评估",
            r"可视化",
        ),
        phrases=(r"分析并(?:比较|对比)", r"(?:搭建|构建|建立).{0,8}(?:流水线|管道)", r"分步计划"),
        spaced=False,
    ),
    "ja": Patterns(
        openers=(r"まず", r"最初に", r"はじめに", r"初めに"),
        followers=(r"次に", r"それから", r"その後", r"続いて", r"最後に"),
        step=(r"ステップ",),
        works=(
            r"分析",
            r"比較",
            r"調査",
            r"要約|まとめ",
            r"設計",
            r"実装",
            r"デプロイ",
            r"移行",
            r"評価",
            r"可視化",
        ),
        phrases=(r"分析して比較", r"パイプラインを(?:構築|作)", r"段階的な計画"),
        spaced=False,
    ),
}
