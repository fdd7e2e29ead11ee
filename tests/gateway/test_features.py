"""The table of features: what is in it, and what joins it from outside."""

import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.events import MemorySaved, StatusShown
from gateway.declaration import SettingsError
from gateway.feature import Call, Command, Feature, Features, on_event, on_press
from gateway.features.jobs import feature as jobs
from gateway.features.plans import feature as plans
from gateway.messages import PlanPress, PluginPress, plugin_token
from gateway.settings import Settings
from gateway.texts.languages import Texts
from gateway.views import Notice
from gateway.wiring.features import GROUP, MENU, OURS, OWN, load_features, our_commands
from gateway.wiring.plugin_settings import find_declared
from tests.stories.rig import Rig, living, quick
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web

EXAMPLE = Path(__file__).parents[2] / "examples" / "feature_ping"


async def answer(call: Call) -> str:
    return "there"


def command(name: str) -> Command:
    return Command(name=name, run=answer, help=str.upper)


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, points: dict[str, str], name: str = "plugin"
) -> None:
    """What an installation leaves behind: the package's names, found on the path."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    lines = (f"{key} = {value}" for key, value in points.items())
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join((f"[{GROUP}]", *lines)))
    monkeypatch.syspath_prepend(str(folder))


def install_example(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(monkeypatch, folder / "site", project["entry-points"][GROUP], "turnkeeper_ping")
    monkeypatch.syspath_prepend(str(EXAMPLE))


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    quick(monkeypatch)
    async with living(tmp_path) as made:
        yield made


GROUPED = (
    *("Conversation\n", "/new", "Plans and approvals\n", "/todo", "Scheduled jobs\n", "/jobs"),
    *("How I work\n", "/mode", "Status and people\n", "/whoami", "More\n", "/ping"),
)
"""Of what /help says, in this order."""


def test_the_menu_names_all_commands_of_our_own() -> None:
    assert tuple(our_commands()) == MENU


def test_two_features_cannot_react_to_the_same() -> None:
    async def press(*_: object) -> None:
        return None

    twice = Feature(name="twice", commands=(command("plan"),))
    with pytest.raises(ValueError, match="twice adds what another feature has: plan"):
        Features((plans.FEATURE, twice))
    presses = Feature(name="presses", presses=(on_press(PlanPress, press),))
    with pytest.raises(ValueError, match="PlanPress"):
        Features((*OWN, presses))
    fired = Feature(name="fired", fired=jobs.FEATURE.fired)
    with pytest.raises(ValueError, match="fired adds what another feature has: fired"):
        Features((*OWN, fired))


def test_a_command_says_what_it_does() -> None:
    silent = Command(name="silent", run=answer)
    with pytest.raises(ValueError, match="no text command_silent"):
        Features((Feature(name="silent", commands=(silent,)),))
    texts: Texts[str] = Texts({"en": {"command_silent": "say {nothing"}})
    with pytest.raises(ValueError, match="in silent the text command_silent cannot be read"):
        Features((Feature(name="silent", commands=(silent,), texts=texts),))
    assert our_commands()["secret"].help("de") != our_commands()["secret"].help("en")


def test_a_press_from_outside_finds_its_feature_by_name() -> None:
    async def press(*_: object) -> None:
        return None

    one, other = (Feature(name=name, presses=(on_press(PluginPress, press),)) for name in "ab")
    features = Features((*OWN, one, other))
    assert features.find_press(PluginPress(feature="b", action="x")) is other.presses[0]
    assert features.find_press(PluginPress(feature="c", action="x")) is None
    assert features.find_press(PlanPress(turn="t", action="stop")) is plans.FEATURE.presses[0]
    with pytest.raises(ValueError, match="what another feature has: a"):
        Features((one, one))


@pytest.mark.parametrize("kind", [MemorySaved, StatusShown])
def test_an_event_is_shown_by_one(kind: type[MemorySaved] | type[StatusShown]) -> None:
    events = (on_event(kind, lambda event, language: Notice(text=event.text)),)
    with pytest.raises(ValueError, match=kind.__name__):
        Features((*OWN, Feature(name="events", events=events)))


def test_a_feature_that_is_not_installed_is_an_error_of_the_settings() -> None:
    with pytest.raises(SettingsError) as caught:
        load_features(("nowhere",))
    said = str(caught.value)
    assert "PLUGINS" in said and "nowhere" in said and "install its package" in said


@pytest.mark.parametrize(
    ("source", "mend"),
    [
        ("FEATURE = 7", "is no gateway.feature.Feature"),
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        (
            "from gateway.feature import Feature, own_command\n"
            "FEATURE = Feature(name='bad', commands=(own_command('help', print),))",
            "help",
        ),
        (
            "from gateway.feature import Feature\nFEATURE = Feature(name='jobs')",
            "calls itself jobs",
        ),
        (
            "from gateway.declaration import Setting\n"
            "from gateway.feature import Feature\n"
            "FEATURE = Feature(name='bad', settings=(Setting('LIMIT', 1, int, 'a limit'),))",
            "must have a name like BAD_LIMIT",
        ),
    ],
)
def test_a_feature_that_cannot_be_used_is_an_error_of_the_settings(
    source: str, mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, {"bad": "bad_feature:FEATURE"})
    (tmp_path / "bad_feature.py").write_text(source)
    monkeypatch.delitem(sys.modules, "bad_feature", raising=False)
    with pytest.raises(SettingsError) as caught:
        load_features(("bad",))
    assert "PLUGINS" in str(caught.value) and mend in str(caught.value)


@pytest.mark.parametrize("surface", [Telegram, Web, Discord, Slack])
async def test_a_feature_from_outside_on_each_surface(
    surface: type[Surface], rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command, its card, the button after a crash, its word from the settings."""
    install_example(monkeypatch, tmp_path)
    person = surface(rig)
    await person.open(PLUGINS="ping", PING_WORD="Here")
    try:
        await person.command("/ping")
        await person.shows("Here 1. Messages that wait here: 0.")
        await rig.quiet()
        await person.restart()
        await person.press("Again: 2")
        await person.shows("Here 2. Messages that wait here: 0.")
        assert "Here 1." not in str(person.screen())
        await person.command("/help")
        await person.shows("ask whether anybody is there")
        (shown,) = [one for one in person.screen() if "Show commands" in one]
        shown = shown.replace("/turnkeeper ", "/")  # as Slack writes them
        words = [shown.index(one) for one in GROUPED]
        assert words == sorted(words)
    finally:
        await person.close()


async def test_a_button_from_outside_is_for_whom_it_says(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example(monkeypatch, tmp_path)
    await rig.start(PLUGINS="ping")
    rig.telegram.say(11, "/ping")
    card = await rig.shows("Pong 1. Messages that wait here: 0.")
    assert "I do not know you yet" in await rig.told(rig.press(card, "Again: 2", user=99))
    assert await rig.told(rig.press(card, "Again: 2")) == ""
    await rig.shows("Pong 2.")


def test_the_settings_of_a_feature_are_known_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example(monkeypatch, tmp_path)
    (tmp_path / "turnkeeper.toml").write_text("PING_WORD = 'Here'\n")
    home = {"TURNKEEPER_HOME": str(tmp_path)}
    with pytest.raises(SettingsError, match="PING_WORD"):
        Settings.read(home, tmp_path, find_declared)
    settings = Settings.read(home | {"PLUGINS": "ping,ping"}, tmp_path, find_declared)
    assert settings.env["PING_WORD"] == "Here" and settings.plugins == ("ping",)


def test_a_setting_of_a_feature_is_checked_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path / "site", {"few": "few_feature:FEATURE"}, "few")
    (tmp_path / "site" / "few_feature.py").write_text(
        "from gateway.declaration import Setting\n"
        "from gateway.feature import Feature\n"
        "FEATURE = Feature(name='few', settings=(Setting('FEW_LIMIT', 1, int, 'a limit'),))"
    )
    env = {"TURNKEEPER_HOME": str(tmp_path), "PLUGINS": "few"}
    assert Settings.read(env | {"FEW_LIMIT": "7"}, tmp_path, find_declared)
    with pytest.raises(SettingsError, match="FEW_LIMIT=many"):
        Settings.read(env | {"FEW_LIMIT": "many"}, tmp_path, find_declared)


def test_our_features_declare_what_the_gateway_reads() -> None:
    assert Features(OWN).settings.keys() <= OURS


async def test_without_its_name_it_is_not_there(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(11, "/ping")
    shown = await rig.shows("ping")
    assert "Pong" not in str(rig.said())
    pressed = rig.telegram.press(11, shown["message_id"], plugin_token("ping", "again", "1-1"), 11)
    assert "do not recognise this button" in await rig.told(pressed)
