"""A feature of one command, /ping, and a button below its answer."""

from gateway.declaration import Setting
from gateway.feature import Call, Command, Context, Feature, Pressed, on_press
from gateway.messages import PluginPress, plugin_token
from gateway.store.rows import InboxRow
from gateway.views import Button, ChoiceCard
from turnkeeper_ping.texts import TEXTS

NAME = "ping"
CARD = "pong"
WORD = Setting("PING_WORD", "Pong", str, "the word that /ping answers with")


async def ping(call: Call) -> str:
    """Answer with a card that has a button; "" says that the answer is there already."""
    card = render_card(call.context, call.seq, 1, call.language)
    call.context.finish(call.seq, call.context.draw(call.seq, CARD, card))
    return ""


async def press(context: Context, row: InboxRow, pressed: Pressed, asked: PluginPress) -> None:
    """Count on, on the card that bears the button."""
    seq, _, count = asked.argument.partition("-")
    if asked.action != "again" or not (seq.isdecimal() and count.isdecimal()):
        context.state.acknowledge(row.seq, pressed.press)  # a button of another version
        return
    card = render_card(context, int(seq), int(count) + 1, pressed.sender.language)
    context.finish(row.seq, *await context.redraw(int(seq), CARD, card))
    context.state.tell(pressed.press, "")  # the card says it


def render_card(context: Context, seq: int, count: int, language: str) -> ChoiceCard:
    """What people see: how often they asked, and how much waits in this conversation. The button
    bears where its card stands and how often it was pressed."""
    waiting = len(context.state.queue)
    return ChoiceCard(
        question="",
        text=TEXTS.say("pong", language, word=context.read(WORD), count=count, waiting=waiting),
        buttons=(
            Button(
                label=TEXTS.say("again", language, following=count + 1),
                token=plugin_token(NAME, "again", f"{seq}-{count}"),
            ),
        ),
        language=language,
    )


FEATURE = Feature(
    name=NAME,
    commands=(Command(name="ping", run=ping, least="viewer"),),
    presses=(on_press(PluginPress, press, least="viewer"),),
    texts=TEXTS,
    settings=(WORD,),
)
