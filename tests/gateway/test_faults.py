"""What failed in the agent is told in the person's language: the very sentences it speaks."""

import httpx2
import msgspec
import pytest

from agent_core import phrases
from agent_core.errors import ModelFailed
from agent_core.events import ErrorMet
from agent_core.journal import Emitted, Failed
from agent_core.models.answers.broken import Broken
from agent_core.models.endpoint import Endpoint
from agent_core.models.port import ModelRequest
from agent_core.models.wire import Line
from agent_core.phrases import Phrase, phrase
from gateway.delivery.failures import describe_error
from gateway.delivery.fold import ViewFold
from gateway.texts.failures import ENGLISH
from gateway.views import Notice

LINE = Line(Endpoint(provider="openai", base_url="http://m.example/v1", api_key="k"))


def failed(status: int) -> ModelFailed:
    request = httpx2.Request("POST", "http://m.example/v1")
    body = {"error": {"message": "no such model"}}
    return LINE.read_refusal(httpx2.Response(status, json=body, request=request))


async def broke(said: Phrase) -> ModelFailed:
    async def attempt(left: int, show: object) -> None:
        raise Broken(said, "rejected")

    with pytest.raises(ModelFailed) as caught:
        request = ModelRequest(model="m", system="", messages=())
        await LINE.try_again(request, attempt, lambda delta: None)  # type: ignore[arg-type]
    return caught.value


def told(failure: ModelFailed, language: str) -> str:
    return describe_error(ErrorMet(text=str(failure), phrases=failure.phrases), language)


@pytest.mark.parametrize(
    ("status", "german"),
    [
        (401, "openai hat den Schlüssel abgelehnt (401). Prüfen Sie the API key."),
        (402, "openai meldet, dass kein Guthaben mehr da ist. Prüfen Sie das Konto."),
        (429, "openai nimmt im Augenblick nicht mehr Anfragen an (429). Versuchen Sie es später "
         "noch einmal oder nehmen Sie ein anderes Modell."),
        (408, "openai hat zu lange gebraucht (408). Versuchen Sie es noch einmal."),
        (503, "openai ist überlastet oder ausgefallen (503: no such model). Versuchen Sie es später "
         "noch einmal."),
        (404, "openai hat die Anfrage nicht angenommen (404): no such model"),
    ],
)  # fmt: skip
def test_what_a_provider_refuses_is_told_in_german(status: int, german: str) -> None:
    assert told(failed(status), "de") == german
    assert told(failed(status), "en") == str(failed(status))


def test_what_cannot_be_reached_is_told_in_german() -> None:
    assert told(LINE.translate_unreachable(OSError("x")), "de").startswith(
        "openai ist unter m.example"
    )
    late = httpx2.ReadTimeout("late")
    assert told(LINE.translate_unreachable(late), "de").startswith("openai hat 300 s lang")


@pytest.mark.parametrize(
    ("said", "german"),
    [
        (phrase("fault_cut"), "hat die Antwort abgebrochen"),
        (phrase("fault_stopped"), "hat aufgehört zu senden"),
        (phrase("fault_empty"), "hat eine leere Antwort gegeben"),
        (phrase("fault_senseless", detail="an answer"), "hat Unverständliches gesendet"),
        (phrase("fault_error", detail="boom"), "hat mit einem Fehler abgebrochen: boom"),
    ],
)
async def test_what_breaks_off_is_told_in_german(said: Phrase, german: str) -> None:
    assert told(await broke(said), "de").startswith(f"openai {german}. ")


def test_two_providers_are_told_of_one_after_another() -> None:
    both = ModelFailed((*failed(429).phrases, *failed(500).phrases))
    assert str(both) == f"{failed(429)} {failed(500)}"
    assert told(both, "de") == f"{told(failed(429), 'de')} {told(failed(500), 'de')}"


@pytest.mark.parametrize("words", ["", "Dieser Vorgang hat sein Limit erreicht.", "Boom. (500)"])
def test_other_words_stay(words: str) -> None:
    assert told(ModelFailed(words), "de") == words


def test_a_failure_of_an_older_version_is_told_as_it_is() -> None:
    old = msgspec.json.decode(b'{"kind":"error","text":"openai took too long."}', type=ErrorMet)
    assert describe_error(old, "de") == "openai took too long."
    newer = ErrorMet(text="x", phrases=(Phrase(key="fault_of_tomorrow"),))
    assert describe_error(newer, "de") == "fault_of_tomorrow"


def test_a_person_sees_the_failure_in_their_language() -> None:
    fold = ViewFold(language="de-AT")
    stuck = phrase("fault_stuck", detail="3 errors in a row, the last: (x)")
    met = ErrorMet(text=str(stuck), phrases=(stuck,))
    (name,) = fold.add(Emitted(key="stuck", event=met))
    text = "So kam ich nicht weiter. Fragen Sie auf andere Weise."
    assert fold.shapes[name].view == Notice(text=text, tone="error")


def test_a_failure_is_the_same_after_it_was_stored() -> None:
    stored = Failed(key="k", error="model", text="x", phrases=failed(503).phrases)
    known = msgspec.json.decode(msgspec.json.encode(stored), type=Failed)
    assert known == stored and told(ModelFailed(known.phrases), "de") == told(failed(503), "de")


def test_each_phrase_of_the_agent_is_in_the_catalogue() -> None:
    assert phrases.FAULTS == ENGLISH
