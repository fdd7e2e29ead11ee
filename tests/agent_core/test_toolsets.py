"""Sets of tools, the search for one, calls by name, and what all of it costs a request."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent_core.messages import Text, ToolCall
from agent_core.models.port import ModelReply, ToolSpec
from agent_core.settings import SettingsError
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.files import file_tools
from agent_core.tools.finding import schema
from agent_core.tools.finding.mcp_tools import Definition, NoRegistry
from agent_core.tools.finding.ranking import rank
from agent_core.tools.finding.tools import unwrap_calls
from agent_core.tools.finding.toolsets import BUILT_IN, Toolsets, is_in_all
from agent_core.tools.toolbox import Prepared, Toolbox, UnfitCall
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, PERSON, Rig


def sets(text: str, places: str = "") -> Toolsets:
    return Toolsets.read({"TOOLSETS": text, "TOOLSETS_FOR": places})


# ---- sets --------------------------------------------------------------------------------


def test_sets_hold_patterns_and_other_sets() -> None:
    made = sets('{"safe": ["read_file", "list_*", "@web"], "all": ["@safe", "notes__*"]}')
    assert made.patterns("safe") == ("read_file", "list_*", *BUILT_IN["web"])
    assert made.patterns("all") == (*made.patterns("safe"), "notes__*")


def test_places_that_come_together_leave_what_is_in_all_of_their_sets() -> None:
    made = sets(
        '{"a": ["read_*", "write_file"], "b": ["*_file"]}', '{"telegram": "a", "role:user": "b"}'
    )
    reach = made.reach(("telegram", "role:user", "nowhere"))
    assert is_in_all("read_file", reach) and is_in_all("write_file", reach)
    assert not is_in_all("read_page", reach) and not is_in_all("send_file", reach)
    assert is_in_all("anything", made.reach(("nowhere",)))


@pytest.mark.parametrize(
    ("text", "places", "said"),
    [
        ('{"a": ["@b"], "b": ["@a"]}', "", "it holds itself"),
        ('{"a": ["@nothing"]}', "", "there is no such set"),
        ('{"a": "read_file"}', "", "TOOLSETS: write JSON"),
        ("{}", '{"telegram": "nothing"}', "TOOLSETS_FOR=telegram=nothing"),
        ("{}", "[1]", "TOOLSETS_FOR: write JSON"),
    ],
)
def test_wrong_sets_are_named(text: str, places: str, said: str) -> None:
    with pytest.raises(SettingsError, match="TOOLSETS") as wrong:
        sets(text, places)
    assert said in str(wrong.value)


# ---- the search --------------------------------------------------------------------------


def spec(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name=name, description=description, parameters={"type": "object"})


MANY = (
    spec("gh__create_issue", "Open a new issue in a repository."),
    spec("gh__listPullRequests", "Pull requests of a repository, newest first."),
    spec("crm__search_contacts", "Search people by name or company."),
    spec("crm__create_contact", "Add a person."),
    spec("rollback", "Undo the last change of a file."),
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("open an issue", "gh__create_issue"),
        ("list pull requests", "gh__listPullRequests"),
        ("find contacts", "crm__search_contacts"),
        ("add a new contact", "crm__create_contact"),
        ("undo my change", "rollback"),
        ("gh__create_issue", "gh__create_issue"),
        ("repositories", ""),
    ],
)
def test_the_best_comes_first(query: str, first: str) -> None:
    found = rank(query, MANY, 3)
    assert (found[0].name if found else "") == first


@given(st.text(max_size=60), st.integers(1, 4))
def test_any_query_finds_at_most_so_many_and_always_the_same(query: str, most: int) -> None:
    found = rank(query, MANY, most)
    assert len(found) <= most and found == rank(query, MANY, most)


# ---- calls by name -----------------------------------------------------------------------


def reply(name: str, arguments: str) -> ModelReply:
    parts = (Text(text="well"), ToolCall(id="1", name=name, arguments=arguments))
    return ModelReply(parts=parts, model="m", provider="p")


@pytest.mark.parametrize("inner", ['{"a": 1}', '"{\\"a\\": 1}"'], ids=["object", "text"])
def test_a_call_through_call_tool_is_the_call_that_it_means(inner: str) -> None:
    said = unwrap_calls(reply("call_tool", f'{{"name": "x__y", "arguments": {inner}}}'))
    call = said.parts[1]
    assert isinstance(call, ToolCall) and (call.id, call.name) == ("1", "x__y")
    assert json.loads(call.arguments) == {"a": 1}


@pytest.mark.parametrize("arguments", ["", "{", "[]", '{"arguments": {}}', '{"name": 1}'])
def test_what_means_no_tool_stays_what_it_is(arguments: str) -> None:
    said = reply("call_tool", arguments)
    assert unwrap_calls(said).parts == said.parts


class Nothing(BaseModel):
    pass


def foreign(parameters: dict[str, object]) -> Tool:
    definition = Definition(
        name="x__y", server="x", tool="y", description="", parameters=parameters
    )
    return NoRegistry().make(definition)


def test_what_is_not_offered_can_be_called_within_reach_only() -> None:
    box = Toolbox(file_tools())
    call = ToolCall(id="1", name="read_file", arguments='{"path": "a"}')
    assert isinstance(box.prepare(call, (), ()), Prepared)
    assert isinstance(box.prepare(call, (), (("read_*",),)), Prepared)
    assert isinstance(box.prepare(call, (), (("write_*",),)), UnfitCall)
    assert isinstance(box.prepare(call, (), None), UnfitCall)
    bounded = box.show_more((), (("write_*",),))
    refused = bounded.prepare(call, ("read_file", "write_file"), ())
    assert isinstance(refused, UnfitCall) and "Tools: write_file." in refused.text


def test_a_strangers_arguments_are_checked_by_the_strangers_schema() -> None:
    known = {
        "x__y": foreign(
            {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
        )
    }
    box = Toolbox(())

    def prepared(arguments: str) -> Prepared | UnfitCall:
        call = ToolCall(id="1", name="x__y", arguments=arguments)
        return box.prepare(call, (), (), known)

    fits = prepared('{"n": 1, "model_dump": "a name of ours"}')
    assert isinstance(fits, Prepared)
    assert fits.arguments.model_dump() == {"n": 1, "model_dump": "a name of ours"}
    for wrong in ('{"n": "1"}', "{}", "[]", "{"):
        assert isinstance(prepared(wrong), UnfitCall), wrong


def test_a_strangers_schema_can_do_no_harm() -> None:
    far = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}}
    assert schema.faults(far, {"a": 1}) == ()
    slow = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert schema.faults(slow, {"a": "a" * 60 + "!"}) == ()
    assert schema.faults({"properties": {"a": {"type": "no such type"}}}, {"a": 1}) == ()
    assert schema.objects(None) == {"type": "object", "properties": {}}


async def test_a_tool_of_a_server_that_is_gone_says_so(tmp_path: Path) -> None:
    tool = foreign({"type": "object"})
    context = ToolContext(workspace=tmp_path, key="k", limit=1, output=lambda _: None)
    with pytest.raises(Exception, match="not available now: the server x is not set up"):
        await tool.call(Nothing(), context)


# ---- through the gateway -----------------------------------------------------------------


async def test_the_fixed_part_stays_below_ten_kilobytes(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    body = rig.model.requests[0].body
    names = {tool["function"]["name"] for tool in body["tools"]}
    assert {"find_tools", "call_tool", "read_file", "run_command"} <= names
    assert not {"terminate", "delegate_to_research"} & names, "these are found"
    system = [m["content"] for m in body["messages"] if m["role"] == "system"]
    assert len(json.dumps([system, body["tools"]], ensure_ascii=False).encode()) <= 10 * 1024
    await rig.quiet()


async def test_a_tool_that_is_not_shown_is_found_and_called(rig: Rig) -> None:
    end = '{"name": "terminate", "arguments": {"status": "success", "answer": "at the end"}}'
    rig.model.script(Call("find_tools", '{"query": "end the work"}'), Call("call_tool", end))
    await rig.start()
    rig.telegram.say(PERSON, "go")
    await rig.shows("at the end")
    assert "terminate: End the work now" in rig.seen(role="tool")[-1]
    await rig.quiet()


async def test_beyond_its_set_nothing_is_shown_found_or_called(rig: Rig) -> None:
    rig.model.script(
        Call("find_tools", '{"query": "end the work"}'),
        Call("call_tool", '{"name": "terminate", "arguments": {"status": "success"}}'),
        Call("write_file", '{"path": "a", "content": "b"}'),
        Say("nothing to be done"),
    )
    await rig.start(
        TOOLSETS='{"safe": ["read_file", "list_*", "@find"]}', TOOLSETS_FOR='{"telegram": "safe"}'
    )
    rig.telegram.say(PERSON, "go")
    await rig.shows("nothing to be done")
    shown = [tool["function"]["name"] for tool in rig.model.requests[-1].body["tools"]]
    assert shown == ["read_file", "list_files", "find_tools", "call_tool"]
    found, ended, wrote = rig.seen(role="tool")
    assert "terminate" not in found
    assert "There is no tool 'terminate'" in ended and "no tool 'write_file'" in wrote
    assert rig.cards() == []
    await rig.quiet()


async def test_a_role_may_call_less_though_all_see_the_same(rig: Rig) -> None:
    """In a group the prompt is one for all, so that it begins the same whoever speaks."""
    write = Call("write_file", '{"path": "a", "content": "b"}')
    rig.model.script(write, Say("for the user"), write, Say("for the admin"))
    await rig.start(TOOLSETS='{"look": ["read_*", "list_*"]}', TOOLSETS_FOR='{"role:user": "look"}')
    rig.telegram.say(PERSON, "write")
    await rig.shows("for the user")
    assert (
        "There is no tool 'write_file'. Tools: read_file, list_files" in rig.seen(role="tool")[-1]
    )
    rig.telegram.say(ADMIN, "write")
    await rig.shows("for the admin", ADMIN)
    assert "Created a" in rig.seen(role="tool")[-1]
    assert len({json.dumps(request.body["tools"]) for request in rig.model.requests}) == 1
    await rig.quiet()
