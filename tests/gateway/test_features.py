"""The table of features: what is in it, and what joins it from outside."""

import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.feature import Call, Command, Feature, Features, on_press
from gateway.features.plans import feature as plans
from gateway.messages import PlanPress
from gateway.settings import ConfigurationError
from gateway.wiring.features import GROUP, MENU, OWN, load_features, our_commands
from tests.stories.rig import Rig, living, quick

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


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    quick(monkeypatch)
    async with living(tmp_path) as made:
        yield made


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


def test_a_feature_that_is_not_installed_is_an_error_of_the_settings() -> None:
    with pytest.raises(ConfigurationError) as caught:
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
            "FEATURE = Feature(name='taken', commands=(own_command('help', print),))",
            "help",
        ),
    ],
)
def test_a_feature_that_cannot_be_used_is_an_error_of_the_settings(
    source: str, mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, {"bad": "bad_feature:FEATURE"})
    (tmp_path / "bad_feature.py").write_text(source)
    monkeypatch.delitem(sys.modules, "bad_feature", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        load_features(("bad",))
    assert "PLUGINS" in str(caught.value) and mend in str(caught.value)


async def test_a_feature_from_outside_answers_in_the_chat(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(monkeypatch, tmp_path / "site", project["entry-points"][GROUP], "turnkeeper_ping")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    await rig.start(PLUGINS="ping")
    rig.telegram.say(11, "/ping")
    await rig.shows("Pong. Messages that wait here: 0.")
    rig.telegram.say(11, "/help")
    await rig.shows("/ping — ask whether anybody is there")
    await rig.quiet()


async def test_without_its_name_it_is_not_there(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(11, "/ping")
    await rig.shows("ping")
    assert "Pong" not in str(rig.said())
