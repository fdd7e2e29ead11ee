"""The language that somebody writes in is told when it is sure, and never wrongly."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.command_texts import drop_marks
from gateway.conversation.inbox.spoken_language import SpokenLanguages, guess_language
from gateway.texts import CATALOGUE
from tests.sampling import examples

SAID = {
    "de": (
        "kannst du mir sagen wie das Wetter morgen wird", "Hallo, wie geht's?",
        "Schau bitte mal ins Log, da ist was kaputt", "lies die datei a.yaml und erklär sie mir",
        "Warum läuft der Build nicht?", "Fass die Datei zusammen und schick sie mir",
        "das ist der Fehler:\n```\nthe file could not be opened, and that is why you are here\n```",
    ),
    "en": (
        "can you look at the log please", "what's the weather like tomorrow",
        "Delete the build folder and run the tests again", "why does the build fail?",
    ),
    "fr": (
        "peux-tu regarder le journal s'il te plaît", "Quel temps fait-il demain ?",
        "Supprime le dossier build et relance les tests", "bonjour, comment ça va",
    ),
    "es": (
        "¿puedes mirar el registro por favor?", "qué tiempo hará mañana",
        "borra la carpeta build y vuelve a ejecutar las pruebas", "hola, cómo estás",
    ),
    "pt": (
        "você pode olhar o registro por favor?", "como vai estar o tempo amanhã",
        "por que a compilação falha?", "olá, como você está",
    ),
    "ru": (
        "посмотри пожалуйста лог", "удали папку build и запусти тесты снова",
        "почему не собирается этот проект?", "привет, как дела",
    ),
    "ja": ("ログを見てください", "buildフォルダを削除してテストを実行して"),
    "zh": ("请看一下日志", "帮我列出所有未解决的工单", "你好，你最近怎么样"),
    "": (
        "hi", "ok", "run", "die", "es", "was", "la la la", "deploy staging", "東京駅周辺", "天気予報",
        "git push origin main", "ls -la /tmp", "SELECT * FROM users WHERE id = 3", "", " \n ",
        "error: cannot open file 'x': no such file", "def f(x):\n    return x", "see https://a.de/das",
        "Hej, kan du titta på loggen och säga vad som är fel",
        "puoi guardare il log per favore e dirmi cosa non va",
        "kun je het log bekijken en zeggen wat er mis is",
        "Czy możesz sprawdzić dziennik i powiedzieć, co jest nie tak",
        "Можеш ли да погледнеш лога и да кажеш какво не е наред",
        "Чи можеш ти подивитися журнал і сказати, що не так",
        "로그를 확인해 주세요", "loglara bakıp neyin yanlış olduğunu söyler misin",
        "bisakah kamu melihat log dan mengatakan apa yang salah",
        "Pots mirar el registre i dir-me què passa si us plau",
        "poți să te uiți la jurnal și să-mi spui ce nu merge",
        "Kan du se på loggen og si hva som er galt", "můžeš se podívat do logu a říct co je špatně",
    ),
}  # fmt: skip
LEAST = 0.6
"""Share of the gateway's own texts of some length that are told; none is told wrongly."""


def test_what_people_write() -> None:
    found = {text: guess_language(text) for texts in SAID.values() for text in texts}
    assert found == {text: code for code, texts in SAID.items() for text in texts}


def test_our_own_texts_are_never_taken_for_another_language() -> None:
    for code in CATALOGUE.list_codes():
        said = [re.sub(r"\{[^{}]*\}", "", drop_marks(one)) for one in CATALOGUE.read(code).values()]
        least = 12 if code in ("ja", "zh") else 35
        told = [(guess_language(text), text) for text in said if len(text) >= least]
        assert [one for one in told if one[0] not in ("", code)] == []
        share = sum(bool(language) for language, _ in told) / len(told)
        assert share > LEAST, f"{code}: {share}"


@given(st.text(max_size=800))
@settings(max_examples=examples(90), deadline=None)
def test_any_text_is_read(text: str) -> None:
    assert guess_language(text) in {"", *CATALOGUE.list_codes()}


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (("ok", SAID["de"][0], "ok"), ("", "de", "de")),
        ((SAID["de"][0], SAID["en"][0], SAID["de"][1]), ("de", "de", "de")),
        ((SAID["de"][0], SAID["en"][0], SAID["fr"][0], SAID["fr"][1]), ("de", "de", "de", "fr")),
        ((SAID["de"][0], SAID["en"][0], "ok", SAID["en"][1], "ok"), ("de", "de", "de", "en", "en")),
    ],
)
def test_one_text_in_another_language_may_be_pasted(
    said: tuple[str, ...], known: tuple[str, ...]
) -> None:
    languages = SpokenLanguages()
    assert tuple(languages.learn("discord:1", text) for text in said) == known
    assert languages.learn("discord:2", "ok") == ""
