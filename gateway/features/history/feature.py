"""The history: undo, retry, resume."""

from agent_core.events import FilesChanged
from gateway.feature import Feature, on_event, on_inbound, on_press, on_queued, own_command
from gateway.features.history.commands import press_found, resume, retry, undo
from gateway.features.history.edits import offer_again
from gateway.features.history.presses import press
from gateway.features.history.undo import begin_again
from gateway.messages import CommandGiven, MessageEdited, PluginPress, TurnPress, turn_token
from gateway.texts import say
from gateway.views import ActivityNote, Button


def make_note(event: FilesChanged, language: str) -> ActivityNote:
    """Note the files that a turn changed, with a button that restores them."""
    more = f" (+{event.more})" if event.more else ""
    text = say("files_changed", language, names=", ".join(event.paths) + more)
    restore = Button(label=say("turn_restore", language), token=turn_token(event.turn, "restore"))
    return ActivityNote(note=text, buttons=(restore,))


FEATURE = Feature(
    name="history",
    commands=(
        own_command("undo", undo, of_talk=True, most_words=1),
        own_command("retry", retry, of_talk=True),
        own_command("resume", resume, of_talk=True),
    ),
    presses=(on_press(TurnPress, press), on_press(PluginPress, press_found)),
    inbounds=(on_inbound(MessageEdited, offer_again),),
    begins=(on_queued(CommandGiven, begin_again),),
    events=(on_event(FilesChanged, make_note),),
)
