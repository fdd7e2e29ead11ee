"""What was said: taken back, asked anew, gone on from."""

from gateway.feature import Feature, on_inbound, on_press, on_queued, own_command
from gateway.features.history.commands import resume, retry, undo
from gateway.features.history.edits import offer_again
from gateway.features.history.presses import press
from gateway.features.history.undo import begin_again
from gateway.messages import CommandGiven, MessageEdited, TurnPress

FEATURE = Feature(
    name="history",
    commands=(
        own_command("undo", undo),
        own_command("retry", retry),
        own_command("resume", resume),
    ),
    presses=(on_press(TurnPress, press),),
    inbounds=(on_inbound(MessageEdited, offer_again),),
    begins=(on_queued(CommandGiven, begin_again),),
)
