"""Every language whole: each text there, with the same places and commands, in as many forms as the
language counts with, and as short as every platform takes it."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from adapters.discord.components import LABEL as DISCORD_LABEL
from adapters.discord.components import TITLE as DISCORD_TITLE
from adapters.discord.menu import LONGEST
from adapters.slack.blocks import LABEL as SLACK_LABEL
from adapters.slack.blocks import MODAL_TITLE
from adapters.web.words import WORDS as PAGE
from cron.schedule_words import WORDS as SCHEDULES
from gateway.command_texts import drop_marks
from gateway.features.instructions.texts import TEXTS as INSTRUCTIONS
from gateway.features.secrets.texts import TEXTS as SECRETS
from gateway.features.servers.texts import TEXTS as SERVERS
from gateway.texts import CATALOGUE
from gateway.texts.languages import ENGLISH, LanguageFile, Texts, compare, reduce_language
from gateway.texts.plurals import choose_form, count_forms
from gateway.wiring.features import our_commands

ROOT = Path(__file__).parents[2]
SETS: Mapping[str, Texts[str]] = {
    "gateway": CATALOGUE,
    "instructions": INSTRUCTIONS,
    "secrets": SECRETS,
    "servers": SERVERS,
    "page": PAGE,
    "schedules": SCHEDULES,
}
FILES = sorted(
    path for area in ("gateway", "adapters", "cron") for path in ROOT.glob(f"{area}/**/data/*.json")
)
SPOKEN = tuple(sorted({code for texts in SETS.values() for code in texts.list_codes()}))
UNREAD = "machine-made; no speaker has read this yet"
"""The note of a file until somebody who speaks the language has read it."""
OTHERS = [code for code in SPOKEN if code != ENGLISH]
FOR_LOGS = {"why_person", "why_read", "why_contained", "granted_before"}
"""Why a call is allowed: no person is told."""
LEFT_OUT = {"fault_senseless", "fault_stuck"}
"""Their detail is English, for who reads the log."""


def texts_of(code: str) -> Iterator[tuple[str, str, str, str]]:
    """(set, key, text, English) of the language."""
    for name, texts in SETS.items():
        for key, text in texts.read(code).items():
            yield name, key, text, texts.read(ENGLISH)[key]


@pytest.mark.parametrize("code", OTHERS)
def test_a_language_is_whole(code: str) -> None:
    missing = [
        f"{name}: {key}"
        for name, texts in SETS.items()
        if not (code == "de" and name == "schedules")  # cron-descriptor's German is good
        for key in texts.read(ENGLISH).keys() - texts.read(code).keys() - FOR_LOGS
    ]
    assert not missing, f"put these texts into {code}: {sorted(missing)}"


@pytest.mark.parametrize("code", OTHERS)
def test_a_text_says_the_same_places_and_commands_as_the_english_one(code: str) -> None:
    wrong = [
        f"{key} {why}: {text}"
        for name, key, text, english in texts_of(code)
        if name != "schedules" and key not in LEFT_OUT
        if (why := compare(key, text, english))
    ]
    assert not wrong


@pytest.mark.parametrize("texts", SETS.values(), ids=SETS)
def test_every_text_can_be_said(texts: Texts[str]) -> None:
    texts.check()


# ---- as short as the platforms take them ---------------------------------------------------

BUTTONS = {
    "approve_once", "approve_conversation", "approve_always", "deny", "hosts_once",
    "hosts_conversation", "hosts_always", "deny_reason", "send_off", "back",
    "jobs_confirm", "jobs_change", "jobs_cancel", "jobs_pause", "jobs_resume", "jobs_run",
    "jobs_history", "jobs_edit", "jobs_delete", "jobs_retry", "jobs_remove", "jobs_keep",
    "plan_go", "plan_edit", "plan_cancel", "plan_skip", "plan_skip_which", "plan_retry",
    "plan_stop", "grant_drop",
}  # fmt: skip
MODALS = {"your_answer", "your_question", "reason", "wishes", "send_off", "back", "deny_reason"}
NOTES = {
    "not_open", "not_yours", "stop_not_yours", "not_here", "unknown_button", "not_allowed", "not_known", "admins_only",
    "passed_on",
    "jobs_gone", "plan_again_before", "plan_over", "grant_gone", "grant_not_yours",
}  # fmt: skip
MAX_NARROW = 40
"""Characters of a button that two of a row have on a small phone."""
MAX_ALERT = 200
"""Characters of Telegram's answer to a press."""


@pytest.mark.parametrize("code", SPOKEN)
def test_words_fit_where_the_platforms_put_them(code: str) -> None:
    known = CATALOGUE.read(code)
    long = [f"{key}: {known[key]}" for key in BUTTONS if len(known[key].format(n=99)) > MAX_NARROW]
    long += [f"{key}: {known[key]}" for key in MODALS if len(known[key]) > MODAL_TITLE]
    long += [f"{key}: {known[key]}" for key in NOTES if len(known[key]) > MAX_ALERT]
    for name, command in our_commands().items():
        about = drop_marks(command.help(code))
        if not about or len(about) > LONGEST:  # Telegram takes 256
            long.append(f"command {name}: {about}")
    assert not long
    assert min(DISCORD_LABEL, SLACK_LABEL) >= MAX_NARROW and MODAL_TITLE <= DISCORD_TITLE


# ---- what a file says of itself ------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_who_has_read_it_and_stands_in_order(path: Path) -> None:
    found = msgspec.json.decode(path.read_bytes(), type=LanguageFile)
    assert found.note == UNREAD or found.note.startswith("read by ")
    assert found.language and "docs/languages.md" in found.how
    english = next(
        known
        for texts in SETS.values()
        if texts.folder == path.parent
        for known in (texts.read(ENGLISH),)
    )
    assert list(found.texts) == [key for key in english if key in found.texts]


def test_the_wheel_holds_every_file() -> None:
    """Hatch takes all of a package but what git ignores."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = wheel["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel.keys() == {"packages"}
    names = [str(path.relative_to(ROOT)) for path in FILES]
    assert {name.partition("/")[0] for name in names} <= {*wheel["packages"]}
    if (ROOT / ".git").exists():
        ignored = subprocess.run(["git", "check-ignore", *names], capture_output=True, cwd=ROOT)
        assert not ignored.stdout


def test_a_language_is_read_when_it_is_spoken() -> None:
    """Eight languages at each start would cost all who speak one."""
    code = "import sys; from gateway import texts as t; from gateway.texts import languages as l; "
    code += "t.CATALOGUE.list_codes(); t.say('stopped'); print(l._read_file.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["0"], done.stderr


# ---- numbers -------------------------------------------------------------------------------

STEPS: Texts[str] = Texts(
    {
        "en": {"steps": "{n} {n:step|steps}", "left": "{n} left"},
        "fr": {"steps": "{n} {n:étape|étapes}"},
        "ru": {"steps": "{n} {n:шаг|шага|шагов}"},
        "ja": {"steps": "{n} ステップ"},
    }
)


@pytest.mark.parametrize(
    ("language", "n", "said"),
    [
        *(("en", n, f"{n} step{'s' * (n != 1)}") for n in (0, 1, 2, 11, 21)),
        *(("fr-CA", n, f"{n} étape{'s' * (n > 1)}") for n in (0, 1, 2, 21)),
        *(("ru", n, f"{n} шаг") for n in (1, 21, 101, 1001)),
        *(("ru", n, f"{n} шага") for n in (2, 3, 4, 22, 104)),
        *(("ru", n, f"{n} шагов") for n in (0, 5, 11, 12, 13, 14, 20, 111, 112, 25)),
        *(("ja", n, f"{n} ステップ") for n in (0, 1, 2)),
        ("it", 1, "1 step"),
    ],
)
def test_a_number_chooses_the_form_as_its_language_counts(language: str, n: int, said: str) -> None:
    assert STEPS.say("steps", language, n=n) == said


def test_a_text_in_place_of_another_language_counts_as_it_is_written() -> None:
    assert STEPS.say("left", "ru", n=21) == "21 left"
    missing: Texts[str] = Texts({"en": {"steps": "{n} {n:step|steps}"}, "ru": {}})
    assert missing.say("steps", "ru", n=21) == "21 steps"


@pytest.mark.parametrize(("code", "forms"), [("ru", "шаг|шагов"), ("ja", "a|b"), ("fr", "a|b|c")])
def test_a_text_has_as_many_forms_as_its_language(code: str, forms: str) -> None:
    texts: Texts[str] = Texts({"en": {"k": "{n} {n:a|b}"}, code: {"k": f"{{n}} {{n:{forms}}}"}})
    with pytest.raises(ValueError, match=f"the text k in {code} needs {count_forms(code)} forms"):
        texts.check()


def test_a_form_may_show_its_number() -> None:
    texts: Texts[str] = Texts({"en": {"k": "{n:a call|these {n} calls}"}})
    assert (texts.say("k", n=1), texts.say("k", n=3)) == ("a call", "these 3 calls")
    assert choose_form("ru", 5, "a|b") == "b"  # a file that is mended wrongly says something still


# ---- what platforms call a language --------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("zh-CN", "zh"), ("zh-hans", "zh"), ("zh_TW", "zh"), ("pt-BR", "pt"), ("es-419", "es"),
        ("ja", "ja"), ("JA-jp", "ja"), ("fil", "fil"), ("jav", "jav"), ("", ""), ("-", ""),
    ],
)  # fmt: skip
def test_a_language_is_found_without_place_and_script(given: str, code: str) -> None:
    assert reduce_language(given) == code
