"""The same person on all surfaces: what they can do, and a text of what they then see."""

from tests.stories.surfaces.discord import Discord
from tests.stories.surfaces.mind import Held, Mind
from tests.stories.surfaces.slack import Slack
from tests.stories.surfaces.surface import Surface
from tests.stories.surfaces.telegram import Telegram
from tests.stories.surfaces.web import Web

__all__ = ["Discord", "Held", "Mind", "Slack", "Surface", "Telegram", "Web"]
