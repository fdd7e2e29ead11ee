"""Skills in the chat: through Telegram, the real gateway and the real model SDK. A mode whose first
round is a skill, its approvals, and what it leaves behind."""

import json
from io import BytesIO

import pptx

from agent_core.context.surroundings import strip_surroundings
from tests.agent_core.events_rig import fill
from tests.fakes.model_images import PICTURE
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.model_steps import Step
from tests.fakes.web_pages import served
from tests.gateway.process import KEY
from tests.stories.research_rig import answer as researched
from tests.stories.research_rig import fact, web_of
from tests.stories.rig import ADMIN, PATIENCE, PERSON, Rig

DECK = {
    "title": "Bees", "subtitle": "Why they matter",
    "slides": [
        {"title": "They pollinate", "points": ["Fruit", "Nuts"], "notes": "Say it slowly."},
        {"title": "They are few", "points": ["Fewer each year"]},
    ],
}  # fmt: skip
BUILT_IN = (
    "image_generation", "code_generation", "web_research", "data_analysis", "slide_generation",
    "app_builder", "task_planning",
)  # fmt: skip
MODELS = {"MAX_MODEL": "openai/big", "PRO_MODEL": "openai/middle", "FLASH_MODEL": "openai/small"}


async def in_mode(rig: Rig, mode: str, who: int = PERSON, **env: str) -> None:
    await rig.start(**env)
    rig.telegram.say(who, f"/mode {mode}")
    await rig.shows(f"Mode: {mode}", who)
    await rig.quiet()


def invoke(skill_id: str, **params: object) -> Call:
    return Call("invoke_skill", json.dumps({"skill_id": skill_id, "params": params}))


async def card_of(rig: Rig, text: str, who: int = PERSON, other: Json | None = None) -> Json:
    """The open card that says `text`, once there is one `other` than that."""
    known = other["message_id"] if other is not None else 0

    def found() -> list[Json]:
        cards = [card for card in rig.cards(who) if card["message_id"] != known]
        return [card for card in cards if text in card["text"]]

    await rig.telegram.wait(lambda: bool(found()), PATIENCE)
    return found()[0]


def result(rig: Rig) -> str:
    """What the model was told that the skill gave."""
    return rig.seen(role="tool")[-1]


def files(rig: Rig, kind: str) -> list[bytes]:
    """What the person was given."""
    messages = [m for m in rig.telegram.chats[PERSON] if m.get("shows") == kind]
    return [rig.telegram.uploads[m["message_id"]][0].data for m in messages]


async def test_a_presentation_is_a_real_one_and_takes_one_call_less(rig: Rig) -> None:
    await in_mode(rig, "slide")
    rig.model.script(Say(json.dumps(DECK)), Say("Here are your slides."))
    rig.telegram.say(PERSON, "Bees, for children")
    card = await rig.card()
    assert "Make slides" in card["text"] and "They pollinate" in card["text"]
    assert len(rig.model.requests) == 1, "no model was asked whether to call the skill"
    rig.press(card, "Approve once")
    await rig.shows("Here are your slides.")
    await rig.quiet()
    assert len(rig.model.requests) == 2
    assert "Bees, for children" in rig.seen(0)[-1]
    (content,) = files(rig, "document")
    show = pptx.Presentation(BytesIO(content))
    texts = [[s.text_frame.text for s in page.shapes if s.has_text_frame] for page in show.slides]
    assert [list(filter(None, page)) for page in texts] == [
        ["Bees", "Why they matter"],
        ["They pollinate", "Fruit\nNuts"],
        ["They are few", "Fewer each year"],
    ]
    assert show.slides[1].notes_slide.notes_text_frame.text == "Say it slowly."
    assert (rig.workspace() / "slides" / "bees.pptx").read_bytes() == content
    call = rig.model.requests[-1].body["messages"][-2]["tool_calls"][0]["function"]
    assert call["name"] == "invoke_skill" and "slide_generation" in call["arguments"]
    assert json.loads(result(rig))["title"] == "Bees"
    lines = next(text for text in rig.said() if "Use a skill" in text)
    assert "Make slides" in lines, "what the skill does is seen as it does it"


async def test_a_presentation_may_rest_on_a_research(rig: Rig) -> None:
    """A skill that works for another one, which hands the question over."""

    def answers(body: Json) -> Step:
        last = strip_surroundings(str(body["messages"][-1]["content"]))
        if body["messages"][-1]["role"] == "tool":
            return Say("Here they are.")
        if last == "Bees with sources":
            return invoke("slide_generation", topic="Which hosts are cheap?", research=True)
        return Say(json.dumps(DECK)) if "Write a presentation" in last else researched(body)

    async with served() as site:
        fill(site)
        await rig.start(**web_of(site))
        rig.model.script(*[answers] * 20)
        rig.telegram.say(PERSON, "Bees with sources")
        rig.press(await card_of(rig, "Research"), "Approve once")
        rig.press(await card_of(rig, "Make slides"), "Approve once")
        await rig.shows("Here they are.")
        await rig.quiet()
    asked = [text for n in range(len(rig.model.requests)) for text in rig.seen(n)]
    outline = next(text for text in asked if text.startswith("Write a presentation"))
    assert "What was found" in outline and fact("Alpha", 0) in outline
    assert len(files(rig, "document")) == 2, "the report and the slides"


# ---- pictures --------------------------------------------------------------------------------


async def test_a_picture_is_asked_for_made_once_and_shown(rig: Rig) -> None:
    await in_mode(rig, "image")
    rig.model.script(Say("There it is."))
    rig.telegram.say(PERSON, "a red barn at dawn")
    card = await rig.card()
    assert "a red barn at dawn" in card["text"] and "openai/gpt-image" in card["text"]
    assert not rig.model.images.asked and not rig.model.requests
    rig.press(card, "Approve once")
    await rig.shows("There it is.")
    await rig.quiet()
    (asked,) = rig.model.images.asked
    assert asked["prompt"] == "a red barn at dawn" and asked["n"] == 1
    assert files(rig, "photo") == [PICTURE]
    assert (rig.workspace() / "images" / "a-red-barn-at-dawn.png").read_bytes() == PICTURE
    assert len(rig.model.requests) == 1


async def test_no_picture_is_made_where_nobody_allows_it(rig: Rig) -> None:
    await in_mode(rig, "image")
    rig.model.script(Say("Then not."))
    rig.telegram.say(PERSON, "a red barn")
    rig.press(await rig.card(), "Deny")
    await rig.shows("Then not.")
    await rig.quiet()
    assert not rig.model.images.asked and "Denied by" in result(rig)


async def test_a_skill_that_was_stopped_leaves_a_history_that_goes_on(rig: Rig) -> None:
    await in_mode(rig, "image")
    rig.telegram.say(PERSON, "a red barn")
    await rig.card()
    rig.telegram.say(PERSON, "/stop all")
    await rig.until(lambda: not rig.cards(), "the card is withdrawn")
    await rig.quiet()
    rig.model.script(Say("There it is."))
    rig.telegram.say(PERSON, "a blue barn")
    rig.press(await card_of(rig, "a blue barn"), "Approve once")
    await rig.shows("There it is.")
    await rig.quiet()
    assert [one["prompt"] for one in rig.model.images.asked] == ["a blue barn"]
    calls = [m for m in rig.model.requests[-1].body["messages"] if m.get("tool_calls")]
    assert len(calls) == 2, "each with its result, else the provider would refuse it"


async def test_a_refused_picture_is_explained(rig: Rig) -> None:
    rig.model.images.refuses = "Your request was rejected by the safety system."
    await in_mode(rig, "image")
    rig.model.script(Say("It was refused."))
    rig.telegram.say(PERSON, "a red barn")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("It was refused.")
    await rig.quiet()
    assert "safety system" in result(rig) and len(rig.model.images.asked) == 1


async def test_google_makes_pictures_in_its_own_words(rig: Rig) -> None:
    rig.model.images.google = True
    google = {
        "GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": f"{rig.model_url}/v1", "IMAGE_PROVIDER": "gemini",
    }  # fmt: skip
    await in_mode(rig, "image", **google)
    rig.model.script(Say("There it is."))
    rig.telegram.say(PERSON, "a red barn")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("There it is.")
    await rig.quiet()
    assert rig.model.images.asked[0]["model"] == "gemini-2.5-flash-image"
    assert files(rig, "photo") == [PICTURE]


async def test_a_mode_whose_skill_cannot_be_used_says_why(rig: Rig) -> None:
    await rig.start(IMAGE_PROVIDER="gemini")
    rig.telegram.say(PERSON, "/mode image")
    await rig.shows("cannot be used here. IMAGE_PROVIDER is gemini: set GEMINI_API_KEY.")
    await rig.quiet()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    assert not rig.cards()


# ---- apps ------------------------------------------------------------------------------------

APP = {
    "name": "Notes", "framework": "Flask", "summary": "Notes on one page.",
    "files": [
        {"path": "main.py", "purpose": "the routes"},
        {"path": "templates/index.html", "purpose": "the page"},
    ],
}  # fmt: skip


async def test_an_app_is_planned_on_max_and_written_on_pro(rig: Rig) -> None:
    await in_mode(rig, "app", **MODELS)
    rig.model.script(
        Say(json.dumps(APP)),
        Say("```python\napp = 1\n```"),
        Say("```html\n<p>notes</p>\n```"),
        Say("The files are there."),
    )
    rig.telegram.say(PERSON, "an app for notes")
    rig.press(await rig.card(), "Approve once")
    rig.press(await card_of(rig, "pip install"), "Deny")
    await rig.shows("The files are there.")
    await rig.quiet()
    asked = [request.body for request in rig.model.requests]
    assert [body["model"] for body in asked] == ["big", "middle", "middle", "middle"]
    assert asked[2]["messages"][: len(asked[1]["messages"])] == asked[1]["messages"]
    project = rig.workspace() / "apps" / "notes"
    assert (project / "main.py").read_text() == "app = 1\n"
    assert (project / "templates" / "index.html").read_text() == "<p>notes</p>\n"
    assert (project / "requirements.txt").read_text() == "flask\n"
    told = json.loads(result(rig))
    assert told["project"] == "apps/notes" and "Denied by" in told["installed"]
    assert told["started"].startswith("Not started") and "not shown" in told["preview"]


async def test_a_page_without_packages_is_started_and_looked_at(rig: Rig) -> None:
    plan = APP | {"framework": "static", "files": [{"path": "index.html", "purpose": "all"}]}
    await in_mode(rig, "app", **MODELS)
    rig.model.script(Say(json.dumps(plan)), Say("```html\n<p>hi</p>\n```"), Say("It runs."))
    rig.telegram.say(PERSON, "a page")
    rig.press(await rig.card(), "Approve once")
    rig.press(await card_of(rig, "http.server"), "Deny")
    await rig.shows("It runs.")
    await rig.quiet()
    told = json.loads(result(rig))
    assert told["installed"] == "It needs no packages." and "Denied by" in told["started"]


async def test_code_is_written_first_and_then_worked_with(rig: Rig) -> None:
    await in_mode(rig, "code", **MODELS)
    rig.model.script(Say("```python\nprint(1)\n```\nRun it."), Say("There it is."))
    rig.telegram.say(PERSON, "print one")
    await rig.shows("There it is.")
    await rig.quiet()
    assert "Write code for this task:\nprint one" in rig.seen(0)[-1]
    assert json.loads(result(rig)) == {"code": "print(1)\n", "explanation": "Run it."}


# ---- the others ------------------------------------------------------------------------------


async def test_data_is_computed_by_a_program_that_may_be_mended(rig: Rig) -> None:
    await rig.start(**MODELS)
    workspace = rig.workspace(ADMIN)
    workspace.mkdir(parents=True)
    (workspace / "a.csv").write_text("n\n2\n3\n")
    sum_up = "print('total', sum(int(x) for x in open('a.csv').read().split()[1:]))"
    rig.model.script(
        invoke("data_analysis", question="What is the total?", files=["a.csv"]),
        Say('{"steps": ["add"]}'),
        Say("```python\nboom\n```"),
        Say(f"```python\n{sum_up}\n```"),
        Say("The total is 5."),
        Say("It is 5."),
    )
    rig.telegram.say(ADMIN, "what is the total of a.csv")
    program = "python3 analysis/what-is-the-total.py"
    first = await card_of(rig, program, ADMIN)
    rig.press(first, "Approve once", ADMIN)
    rig.press(await card_of(rig, program, ADMIN, first), "Approve once", ADMIN)
    await rig.shows("It is 5.", ADMIN)
    await rig.quiet()
    told = json.loads(result(rig))
    assert told["output"].startswith("total 5\n") and told["summary"] == "The total is 5."
    assert "n\n2\n3" in rig.seen(1)[-1], "it saw the data before it planned"
    assert "NameError" in rig.seen(3)[-1], "it saw what was wrong"


async def test_a_folder_is_a_skill_without_code(rig: Rig) -> None:
    folder = rig.home / "skills" / "letters"
    folder.mkdir(parents=True)
    words = "---\nname: letters\ndescription: How letters are written here.\n---\nSign with Best."
    (folder / "SKILL.md").write_text(words)
    (folder / "greeting.txt").write_text("Dear Sir or Madam")
    await rig.start()
    rig.model.script(
        Call("list_skills"),
        invoke("letters"),
        invoke("letters", file="greeting.txt"),
        Say("Dear Sir or Madam … Best"),
    )
    rig.telegram.say(PERSON, "write a letter")
    await rig.shows("Dear Sir or Madam … Best")
    await rig.quiet()
    listed, read, file = rig.seen(role="tool")
    assert "letters (instructions, 1.0.0): How letters are written here." in listed
    assert all(name in listed for name in BUILT_IN)
    assert json.loads(read) == {"text": "Sign with Best.", "files": ["greeting.txt"]}
    assert json.loads(file) == {"text": "Dear Sir or Madam"}
    assert not rig.cards()


async def test_the_skill_that_plans_makes_a_plan_of_the_turn(rig: Rig) -> None:
    await rig.start(**MODELS)
    steps = [{"id": "a", "description": "Find it"}, {"id": "b", "description": "Count it"}]
    rig.model.script(
        invoke("task_planning", task="Find it and count it"),
        Say(json.dumps({"title": "All counted", "steps": steps})),
        Say("found"),
        Say("counted"),
        Say("Found and counted."),
    )
    rig.telegram.say(PERSON, "look at it")
    await rig.shows("☑ 2. Count it")
    await rig.shows("All counted")
    await rig.shows("Found and counted.")
    await rig.quiet()


async def test_a_profile_does_not_stand_in_the_way_of_a_mode(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/mode mcp")
    await rig.shows("Profile: mcp")
    await rig.quiet()
    rig.telegram.say(PERSON, "/mode slide")
    await rig.shows("Mode: slide")
    await rig.quiet()
    rig.model.script(Say(json.dumps(DECK)), Say("Not made."))
    rig.telegram.say(PERSON, "Bees")
    rig.press(await rig.card(), "Deny")
    await rig.shows("Not made.")
    await rig.quiet()
    assert "Denied by" in result(rig)
