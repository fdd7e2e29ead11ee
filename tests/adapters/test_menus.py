"""The menus of commands in every language, as Discord takes them."""

from adapters.discord.menu import LONGEST, rows
from gateway.texts import CATALOGUE, say
from gateway.wiring.features import our_commands
from gateway.wiring.menu import Menu
from tests.fakes.discord_schema import LOCALES


def test_a_command_is_described_in_every_language_of_ours() -> None:
    made = {str(one["name"]): one for one in rows(Menu(our_commands))}
    told = made["new"]["description_localizations"]
    assert isinstance(told, dict)
    assert told.keys() <= LOCALES
    assert {locale.partition("-")[0] for locale in told} == {*CATALOGUE.list_codes()} - {"en"}
    assert told["pt-BR"] == say("command_new", "pt")
    assert told["es-419"] == told["es-ES"] == say("command_new", "es")
    assert told["zh-CN"] == told["zh-TW"] == say("command_new", "zh")
    for one in made.values():
        localized = one["description_localizations"]
        assert isinstance(localized, dict)
        assert all(0 < len(text) <= LONGEST for text in localized.values())
