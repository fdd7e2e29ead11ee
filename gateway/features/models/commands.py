"""The model of a conversation: shown with buttons for the others, chosen by an admin with a button
or by name."""

from functools import partial

from msgspec.structs import replace

from gateway.feature import Call, Context, Pressed
from gateway.messages import MAX_TOKEN, PluginPress, digest, plugin_token
from gateway.store.rows import Changes, InboxRow, OutboxRow
from gateway.texts import say
from gateway.views import Button, ChoiceCard, View

NAME = "models"
CARD = "models"
USE = "use"
LABEL = 60
MAX_BUTTONS = 20
MAX_MODELS = 6
NEWEST = 40
"""Views that are looked through for cards that show the model that was."""
DEFAULT = "pro"
"""The choice of a conversation that uses the default."""


async def choose_by_name(call: Call) -> str:
    """Run `/model`: show the current model, or choose another one; further names are its
    fallbacks."""
    context, language = call.context, call.language
    name = context.services.agent.model_name(context.state.row.settings)
    if call.words and call.role != "admin":
        return say("model_admins", language, model=name)
    if call.words:
        for word in call.words:
            if problem := await context.services.agent.check_model(word, language):
                return problem
        if any("/" not in word for word in call.words[1:]) or len(call.words) > MAX_MODELS:
            return say("model_usage", language)
        _configure(context, ",".join(call.words), call.command.sender.key)
        chosen = context.services.agent.model_name(context.state.row.settings)
        return say("model_chosen", language, model=chosen)
    names = await context.services.agent.list_models() if call.role == "admin" else ()
    if not names:
        return name
    context.finish(call.seq, context.draw(call.seq, CARD, _make_card(context, names, language)))
    return ""


async def press(context: Context, row: InboxRow, pressed: Pressed, asked: PluginPress) -> None:
    """Take the model of the button; only an admin may."""
    language, agent = pressed.sender.language, context.services.agent
    if context.services.access.role(pressed.sender) != "admin":
        name = agent.model_name(context.state.row.settings)
        word = say("model_admins", language, model=name)
        return context.state.acknowledge(row.seq, pressed.press, word)
    names = await agent.list_models()
    wanted = next((one for one in names if _name_button(one) == asked.argument), "")
    problem = await agent.check_model(wanted, language) if wanted else say("model_gone", language)
    if asked.action != USE or problem:
        return context.state.acknowledge(row.seq, pressed.press, problem)
    _configure(context, wanted, pressed.sender.key)
    views = await _redraw_cards(context, names)
    context.state.show(Changes(done=(row.seq,), views=views, row=context.state.row))
    return context.state.tell(pressed.press, "")  # the card shows it


def _configure(context: Context, model: str, by: str) -> None:
    context.state.configure(replace(context.state.row.settings, model=model))
    context.state.note_audit(by, "model", model)


def _make_card(context: Context, names: tuple[str, ...], language: str) -> ChoiceCard:
    """The model in use, and a button for each other one."""
    settings, agent = context.state.row.settings, context.services.agent
    buttons = tuple(
        Button(
            label=_cut(_label(context, one)),
            token=plugin_token(NAME, USE, _name_button(one)),
        )
        for one in names[:MAX_BUTTONS]
        if one != (settings.model or DEFAULT)
    )
    text = say("model_choose", language, model=agent.model_name(settings))
    return ChoiceCard(question="", text=text, buttons=buttons, language=language)


def _label(context: Context, name: str) -> str:
    """A tier with the model behind it; a model by its name."""
    if "/" in name:
        return name
    settings = replace(context.state.row.settings, model=name)
    return f"{name}: {context.services.agent.model_name(settings)}"


def _cut(label: str) -> str:
    return label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"


def _name_button(model: str) -> str:
    """Return the name of `model` for a button, a hash if it is too long."""
    room = MAX_TOKEN - len(f"x:{NAME}:{USE}:")
    return model if len(model.encode()) <= room else digest(model.encode())


async def _redraw_cards(context: Context, names: tuple[str, ...]) -> tuple[OutboxRow, ...]:
    """The newest cards here with the model in use now."""
    await context.state.flush()
    rows = list[OutboxRow]()
    for shown in await context.services.store.latest(context.state.conversation.id, NEWEST):
        if shown.name == CARD:
            draw = partial(_as_now, context, names)
            rows += await context.state.redraw(shown.turn, CARD, draw)
    return tuple(rows)


def _as_now(context: Context, names: tuple[str, ...], view: View) -> View:
    return _make_card(context, names, view.language) if isinstance(view, ChoiceCard) else view
