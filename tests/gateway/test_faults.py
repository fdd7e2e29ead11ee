"""What failed in the agent is told in the person's language: the very sentences it speaks."""

import httpx2
import pytest

from agent_core.errors import ModelFailed
from agent_core.events import ErrorMet
from agent_core.journal import Emitted
from agent_core.models.port import Request
from agent_core.models.providers import Endpoint
from agent_core.models.wire import Broken, Line
from gateway.faults.texts import ENGLISH
from gateway.faults.words import told
from gateway.present import Fold
from gateway.views import Notice

LINE = Line(Endpoint(provider="openai", base_url="http://m.example/v1", api_key="k"))


def failed(status: int) -> str:
    request = httpx2.Request("POST", "http://m.example/v1")
    body = {"error": {"message": "no such model"}}
    return str(LINE.refused(httpx2.Response(status, json=body, request=request)))


async def broke(text: str) -> str:
    async def attempt(left: int, show: object) -> None:
        raise Broken(text, "rejected")

    with pytest.raises(ModelFailed) as caught:
        request = Request(model="m", system="", messages=())
        await LINE.try_again(request, attempt, lambda delta: None)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "german"),
    [
        (401, "openai hat den Schlüssel abgelehnt (401). Prüfen Sie the API key."),
        (402, "openai meldet, dass kein Guthaben mehr da ist (402). Prüfen Sie das Konto."),
        (429, "openai nimmt im Augenblick nicht mehr Anfragen an (429). Versuchen Sie es später "
         "noch einmal oder nehmen Sie ein anderes Modell."),
        (408, "openai hat zu lange gebraucht (408). Versuchen Sie es noch einmal."),
        (503, "openai ist überlastet oder ausgefallen (503). Versuchen Sie es später noch einmal."),
        (404, "openai hat die Anfrage nicht angenommen (404): no such model"),
    ],
)  # fmt: skip
def test_what_a_provider_refuses_is_told_in_german(status: int, german: str) -> None:
    assert told(failed(status), "de") == german
    assert told(failed(status), "en") == failed(status)


def test_what_cannot_be_reached_is_told_in_german() -> None:
    assert told(str(LINE.unreachable(OSError("x"))), "de").startswith("openai ist unter m.example")
    late = OSError("x")
    late.__cause__ = httpx2.ReadTimeout("late")
    assert told(str(LINE.unreachable(late)), "de").startswith("openai hat 300 s lang")


@pytest.mark.parametrize(
    ("text", "german"),
    [
        ("broke off its answer", "hat die Antwort abgebrochen"),
        ("stopped sending", "hat aufgehört zu senden"),
        ("gave an empty answer", "hat eine leere Antwort gegeben"),
        ("sent something that is not a chat completion", "hat Unverständliches gesendet"),
        ("broke off with an error: boom", "hat mit einem Fehler abgebrochen: boom"),
    ],
)
async def test_what_breaks_off_is_told_in_german(text: str, german: str) -> None:
    assert told(await broke(text), "de").startswith(f"openai {german}. ")


def test_two_providers_are_told_of_one_after_another() -> None:
    both = f"{failed(429)} {failed(500).replace('openai', 'azure')}"
    assert told(both, "de") == f"{told(failed(429), 'de')} {told(both.split('model. ')[1], 'de')}"
    assert "azure ist überlastet" in told(both, "de")


@pytest.mark.parametrize("words", ["", "Dieser Vorgang hat sein Limit erreicht.", "Boom. (500)"])
def test_other_words_stay(words: str) -> None:
    assert told(words, "de") == words


def test_a_person_sees_the_failure_in_their_language() -> None:
    fold = Fold(language="de-AT")
    met = ErrorMet(text="This led nowhere (3 errors in a row, the last: (x)). Ask in another way.")
    (name,) = fold.add(Emitted(key="stuck", event=met))
    text = "So kam ich nicht weiter. Fragen Sie auf andere Weise."
    assert fold.shapes[name].view == Notice(text=text, tone="error")


def test_every_text_is_found_again() -> None:
    values = {"name": "openai", "status": "500", "setting": "OPENAI_API_KEY", "host": "a.b",
              "seconds": "60 s", "detail": "some. words"}  # fmt: skip
    for text in ENGLISH.values():
        assert told(text.format(**values), "de") != text.format(**values)
        assert told(text.format(**values), "en") == text.format(**values)
