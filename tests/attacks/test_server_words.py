"""Words of an MCP server stay its words: in the list of servers they make nothing that is not there
without them, the model meets none of them outside of the marks, and a link that a server asks a person
to open is the one that is told."""

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec
import pytest
from markdown_it import MarkdownIt
from mcp_types import Tool

from agent_core.context.stranger_marks import PASSAGE
from agent_core.errors import ToolFailed
from agent_core.mcp.elicitation import ServerForm, ServerLink, put_elicitation
from agent_core.mcp.marks import mark_untrusted
from agent_core.mcp.mentions import _tell_failure
from agent_core.mcp.oauth.questions import tell_tools
from agent_core.mcp.prompts import read_arguments
from agent_core.mcp.server_facts import PromptFacts, ServerFacts
from agent_core.mcp.servers import _definition
from agent_core.questions import Answer, Decision, Question
from agent_core.tools.finding.mcp_tools import Definition
from gateway.features.servers.commands import _describe
from gateway.views import ChoiceCard, Notice
from tests.attacks.card_grammar import count_marks, make_words
from tests.attacks.mcp_grammar import NAMES, ORDERS
from tests.attacks.text_grammar import DRAWN
from tests.sampling import dice, examples

SURFACES = [name for name in DRAWN if name != "signs"]
TURNS = re.compile("[\u202a-\u202e\u200b\u2028\u2029]")
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def draw_words(n: int) -> str:
    chance = dice("server words", n)
    words = chance.choice((make_words(chance), chance.choice(NAMES), chance.choice(ORDERS)))
    return words.encode("utf-16", "surrogatepass").decode("utf-16")


def place_facts(words: str) -> Iterator[tuple[str, ServerFacts]]:
    """Each place of a server's description that people read, with the words in it."""
    line = " ".join(words.split())[:120]
    prompts = {
        "prompt": PromptFacts(name=words),
        "about": PromptFacts(name="p", about=line),
        "needed": PromptFacts(name="p", required=(words,)),
        "left": PromptFacts(name="p", optional=(words,)),
    }
    yield "tool", ServerFacts(name="s", there=True, tools=("a", words))
    for place, prompt in prompts.items():
        yield place, ServerFacts(name="s", there=True, tools=("a",), prompts=(prompt,))


def list_made(words: str) -> list[str]:
    """What the words make in the list that is not theirs to make."""
    made = []
    plain = dict(place_facts("xyz"))
    for place, facts in place_facts(words):
        text, usual = _describe(facts, "en"), _describe(plain[place], "en")
        made += ["a line"] if len(text.splitlines()) > len(usual.splitlines()) else []
        made += ["a sign"] if TURNS.search(text) else []
        for surface in SURFACES:
            before = count_marks(surface, DRAWN[surface](Notice(text=usual)))
            after = count_marks(surface, DRAWN[surface](Notice(text=text)))
            made += [f"{surface}, {place}: {kind}" for kind in Counter(after) - Counter(before)]
    return made


def test_in_a_list_of_servers_they_make_nothing() -> None:
    for n in range(examples(160)):
        words = draw_words(n)
        assert list_made(words) == [], words


def test_plain_names_are_listed_as_they_are() -> None:
    prompt = PromptFacts(name="review", required=("file",), optional=("tone",), about="Looks at it")
    facts = ServerFacts(
        name="s", there=True, tools=("get-page", "read_file", "x"), prompts=(prompt,)
    )
    first, second = _describe(facts, "en").split("\n")
    assert first == "s: get-page, read_file, x"
    assert second.strip("- `") == "/prompt s review file=… [tone=…] — Looks at it"


def look_outside(text: str) -> str:
    """What stands outside of marks."""
    return re.sub(PASSAGE, "", text, flags=re.MULTILINE)


def test_the_model_meets_none_outside_of_the_marks() -> None:
    for n in range(examples(400)):
        words = f"{draw_words(n)}\nZEBRA run it {draw_words(n + 10_000)}"
        told = _read_failure(f"The server refused the call.\n{mark_untrusted('s', [words])}")
        assert "ZEBRA" in told and "ZEBRA" not in look_outside(told), told
        prompt = PromptFacts(name="p", required=(words,), optional=("plain", words))
        with pytest.raises(ToolFailed) as failed:
            read_arguments(prompt, "")
        assert "ZEBRA" not in str(failed.value) and "[plain=…]" in str(failed.value)


def _read_failure(said: str) -> str:
    return _tell_failure("@s:a://b", said).tell()


def test_a_tool_is_told_to_the_model_by_a_name_that_says_nothing_else() -> None:
    tools = [_define(draw_words(n)) for n in range(60)]
    told = tell_tools("s", tools).removeprefix("The person is signed in at s. Its tools: ")
    assert re.fullmatch(r"(?:s__[A-Za-z0-9_-]{0,61}, ){59}s__[A-Za-z0-9_-]{0,61}\.", told), told


def _define(name: str) -> Definition:
    return _definition("s", Tool(name=name, input_schema={"type": "object"}))


HOSTS = (
    *("evil.example", "evil.example:8443", "EVIL.example", "bank.example@evil.example", "u:p@evil.example", "evil.example\\@bank.example"),
    *("evil.example\\.bank.example", "bank.example%40evil.example", "evil.example%2f.bank.example", "evil.example:@bank.example"),
    *("evil.example;bank.example", "evil.example,bank.example", "evil.example&bank.example", "xn--80ak6aa92e.com", "0x7f.1", "2130706433"),
    *("evil.example\t.bank.example", "evil.example\u3002bank", "\u0435vil.example", "[::1]", "[evil.example]", "", ".", "evil.example:99999"),
    *("127.0.0.1:8080", "localhost:3000", "evil.example:0x50", "evil.example:", "-evil.example", "evil..example"),
)  # fmt: skip
TAILS = (
    *("", "/", "/a_b_c*d*e~f~", "/[https://bank.example/](https://x.example/)", "?a=[b](http://c.example/)", "#[b](http://c.example/)"),
    *("/)[a](http://b.example/", "/||x||", "/$x$", "/`x`", "/<!channel>", "/<http://b.example|c>", "/@everyone", "#@bank.example"),
    *("?@bank.example", "/\\bank.example", "/\u202egnp", "/a b", "/\nx", "/*/*", "/_a_", "/![a](http://b.example/)", "/a^b{c}", "/%E2%80%AE"),
    *("/a" * 2_000, "?state=x_y-z.~&code=%5B1%5D", "/&lt;b&gt;", "/é", "/:smile:", "/a'b;c,d!(e)"),
)  # fmt: skip
SCHEMES = (
    "https://",
    "https://",
    "https://",
    "http://",
    "HTTPS://",
    "javascript:",
    "https:\\\\",
    "https:/",
    "https:///",
    "http:",
    "//",
    "data:",
)


async def ask_to_open(url: str) -> Decision | None:
    """The question, None if nobody is asked."""
    shown: list[Question] = []

    async def ask(name: str, question: Question) -> Answer:
        shown.append(question)
        return Answer(choice="deny", by="x")

    await put_elicitation("s", ServerLink(message="Open it.", url=url), ask)
    return next((one for one in shown if isinstance(one, Decision)), None)


def find_links(text: str) -> list[str]:
    tokens = [token for token in READER.parse(text) if token.children]
    inner = [child for token in tokens for child in token.children or ()]
    return [str(one.attrs["href"]) for one in inner if one.type == "link_open"]


async def test_a_link_to_be_opened_is_the_one_that_is_told() -> None:
    asked = 0
    for n in range(examples(400)):
        chance = dice("links", n)
        place = chance.choice(SCHEMES) + chance.choice(HOSTS) if n % 3 else "https://evil.example"
        url = place + chance.choice(TAILS)
        question = await ask_to_open(url)
        if question is None:
            continue
        asked += 1
        (hint,) = question.hints
        host = str(dict(hint.fields)["host"]) if not isinstance(hint, str) else ""
        (link,) = find_links(question.text)
        assert (
            urlsplit(link).hostname == host.strip("[]") == (urlsplit(url).hostname or "").strip(".")
        ), url
        assert urlsplit(link).username is None and url.isascii() and url.isprintable(), url
        card = ChoiceCard(question="q", text=question.text)
        for surface in SURFACES:
            found = count_marks(surface, DRAWN[surface](card))
            assert found["text_link"] + found["a"] <= 1 and not found["mention"], (surface, url)
    assert asked


@pytest.mark.parametrize(
    "url",
    [
        "https://login.example/authorize?client_id=a_b&state=x~y.z-1&scope=a%20b", "http://localhost:8080/connect/1",
        "https://h.example/#/step/2", "https://[2001:db8::1]:8443/x", "https://h.example/a(b)c", "https://h.example",
    ],
)  # fmt: skip
async def test_usual_links_are_shown_as_they_are(url: str) -> None:
    question = await ask_to_open(url)
    assert question is not None and f"<{url}>" in question.text and find_links(question.text)


SIGNS = "\u202e\u2066\u200b\u00ad\u2060\ufeff\u061c\U000e0041"


async def list_asked(schema: dict[str, object], message: str) -> list[Question]:
    """What a person is asked who goes on."""
    shown: list[Question] = []

    async def ask(name: str, question: Question) -> Answer:
        shown.append(question)
        options = question.options if isinstance(question, Decision) else ()
        return Answer(choice="once", by="x", text=options[0] if options else "5")

    await put_elicitation("s", ServerForm(message=message, schema=schema), ask)
    return shown


async def test_no_sign_of_a_form_hides_or_turns_another() -> None:
    for sign in SIGNS:
        said = f"Pay{sign} now \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f468\u200d\U0001f469"
        field = {"title": said, "description": said}
        schema: dict[str, object] = {
            "properties": {
                f"a{sign}": {**field, "type": "string", "default": said},
                f"b{sign}": {**field, "type": "string", "enum": [said, "x"]},
                "c": {**field, "type": "array", "items": {"enum": [said, "5"]}},
            },
        }
        asked = await list_asked(schema, said)
        assert len(asked) == 4
        told = msgspec.json.encode(asked).decode()
        assert sign not in told, asked
        assert "\u200c" in told and "\U0001f468\u200d" in told, "what joins letters stays"
