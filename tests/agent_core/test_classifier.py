"""Which way a request takes: labelled requests in eight languages, and what deciding costs."""

import time

import pytest

from agent_core.orchestration.routes.classifier import classify
from agent_core.orchestration.routes.patterns import LANGUAGES

COMPLEX = {
    "en": (
        "First find the three cheapest hosts, then compare their limits, finally write a table of it.",
        "Please analyze and compare the last two quarters of sales in the files that I uploaded.",
        "Build a data pipeline that loads the logs every night and keeps the failures for a week.",
        "Step 1: read the report. Step 2: check each number. Step 3: tell me what is wrong.",
        "Research the topic, summarize what you find, and design a poster for our open day in June.",
        "Do this for me:\n1. read a.txt\n2. count the words\n3. write the count to b.txt",
    ),
    "de": (
        "Suche zuerst die drei günstigsten Anbieter, vergleiche dann ihre Grenzen und schreibe alles auf.",
        "Analysiere und vergleiche bitte die Umsätze der letzten beiden Quartale aus den Dateien hier.",
        "Schritt 1: lies den Bericht. Schritt 2: prüfe jede Zahl. Schritt 3: sag mir, was falsch ist.",
        "Recherchiere die Anbieter am Markt, bewerte ihre Angebote für uns und dokumentiere deine Wahl mit Gründen.",
    ),
    "fr": (
        "Trouve d'abord les trois hébergeurs les moins chers, ensuite compare leurs limites et écris un tableau.",
        "Analyse et compare les ventes des deux derniers trimestres dans les fichiers que j'ai envoyés hier.",
        "Étape 1 : lis le rapport. Étape 2 : vérifie chaque chiffre. Dis-moi ce qui est faux.",
        "Recherche les fournisseurs, évalue leurs offres et résume le tout dans une page pour la direction.",
    ),
    "es": (
        "Primero busca los tres servidores más baratos, luego compara sus límites y al final escribe una tabla.",
        "Analiza y compara las ventas de los dos últimos trimestres en los archivos que subí ayer.",
        "Paso 1: lee el informe. Paso 2: revisa cada número. Dime qué está mal.",
        "Investiga los proveedores, evalúa sus ofertas y resume todo en una página para la dirección del centro.",
    ),
    "pt": (
        "Primeiro encontre os três servidores mais baratos, depois compare os limites e por fim escreva uma tabela.",
        "Analise e compare as vendas dos dois últimos trimestres nos arquivos que enviei ontem à noite.",
        "Passo 1: leia o relatório. Passo 2: confira cada número. Diga o que está errado.",
        "Pesquise os fornecedores, avalie as ofertas e resuma tudo em uma página para a diretoria da escola.",
    ),
    "ru": (
        "Сначала найди три самых дешёвых хостинга, затем сравни их ограничения и в конце напиши таблицу.",
        "Проанализируй и сравни продажи за последние два квартала в файлах, которые я загрузил вчера вечером.",
        "Шаг 1: прочитай отчёт. Шаг 2: проверь каждое число. Скажи, что неверно.",
        "Изучи поставщиков, оцени их предложения и обобщи всё на одной странице для руководства нашей школы.",
    ),
    "zh": (
        "首先找出三家最便宜的主机商,然后比较它们的限制,最后写一张表格给我看看,谢谢你。",
        "请分析并比较我昨天上传的文件里最近两个季度的销售数据,需要说明差异的原因。",
        "步骤1:阅读报告。步骤2:检查每个数字。告诉我哪里错了。",
        "请调研市场上的供应商,评估他们给我们的报价,并且总结成一页给领导看的材料。",
    ),
    "ja": (
        "まず一番安いホスティングを三つ探して、次にそれぞれの制限を比較し、最後に表を書いてください。",
        "昨日アップロードしたファイルにある直近二四半期の売上を分析して比較してください。差の理由も知りたいです。",
        "ステップ1:報告書を読む。ステップ2:数字を確認する。間違いを教えてください。",
        "市場の業者を調査して、提示された条件を評価し、上司に見せる一ページの資料に要約してください。",
    ),
}
SIMPLE = {
    "en": (
        "hello",
        "What is the capital of Australia?",
        "First find it, then write it down.",
        "Could you explain to me in plain words how a lock without a key works and why it is safe?",
        "When did he move to the first house that his mother bought after the war, and who lived there?",
        "My code prints nothing.\nHere it is:\n\nprint(end='')\n\nWhat do I have to change so that it prints?",
    ),
    "de": (
        "Guten Morgen",
        "Wie wird das Wetter morgen in Köln?",
        "Kannst du mir bitte erklären, warum der Himmel am Abend rot aussieht und am Mittag blau ist?",
    ),
    "fr": (
        "Bonjour",
        "Quelle heure est-il à Tokyo ?",
        "Peux-tu m'expliquer pourquoi le ciel est rouge le soir et bleu à midi quand il fait beau ?",
    ),
    "es": (
        "Hola, buenas tardes",
        "¿Cuál es la capital de Australia?",
        "¿Me puedes explicar por qué el cielo se ve rojo por la tarde y azul al mediodía en verano?",
    ),
    "pt": (
        "Bom dia",
        "Qual é a capital da Austrália?",
        "Você pode me explicar por que o céu fica vermelho à tarde e azul ao meio-dia no verão?",
    ),
    "ru": (
        "Привет",
        "Какая столица у Австралии?",
        "Объясни мне, пожалуйста, почему небо вечером красное, а днём при ясной погоде летом всегда синее?",
    ),
    "zh": (
        "你好",
        "澳大利亚的首都是哪里?",
        "请你用简单的话给我解释一下,为什么傍晚的天空看起来是红色的,而中午的时候却是蓝色的呢?",
    ),
    "ja": (
        "こんにちは",
        "オーストラリアの首都はどこですか?",
        "どうして夕方の空は赤く見えるのに、昼間の空は青く見えるのか、簡単な言葉で説明してもらえますか?",
    ),
}
LABELLED = [
    (language, text, route)
    for route, labelled in (("complex", COMPLEX), ("simple", SIMPLE))
    for language, texts in labelled.items()
    for text in texts
]


@pytest.mark.parametrize(("language", "text", "route"), LABELLED)
def test_labelled_requests(language: str, text: str, route: str) -> None:
    assert classify(text) == route, language


def test_sixty_are_labelled_in_each_language_we_have_patterns_for() -> None:
    assert len(LABELLED) >= 60
    assert set(COMPLEX) == set(SIMPLE) == set(LANGUAGES)


def test_modes_come_before_words() -> None:
    several = COMPLEX["en"][0]
    assert classify("hi", "research") == "research"
    assert {classify(several, mode) for mode in ("app", "code", "image", "slide", "data")} == {
        "simple"
    }


def test_what_is_short_can_be_set() -> None:
    assert classify("First find it, then write it down.", short=3) == "complex"


def test_a_line_break_is_no_sentence_of_its_own_at_the_end() -> None:
    assert classify("hello there\n") == "simple"
    assert classify("") == "simple"


def test_deciding_costs_nothing_worth_speaking_of() -> None:
    assert seconds("what is new in the world today?") < 50e-6
    assert seconds(COMPLEX["de"][0]) < 1e-3
    assert seconds("word and other words, " * 5_000) < 20e-3, "a long paste is not read to its end"


def seconds(text: str) -> float:
    """The best of many: what it costs when nothing else runs."""
    best = 1.0
    for _ in range(50):
        begun = time.perf_counter()
        classify(text)
        best = min(best, time.perf_counter() - begun)
    return best
