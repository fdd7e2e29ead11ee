"""The choice of the model that answers."""

from gateway.feature import Feature, on_press, own_command
from gateway.features.models.commands import NAME, choose_by_name, press
from gateway.messages import PluginPress

FEATURE = Feature(
    name=NAME,
    commands=(own_command("model", choose_by_name, "viewer"),),
    presses=(on_press(PluginPress, press, least=None),),
)
