"""Histories that every provider is given."""

from hypothesis import strategies as st

from agent_core.messages import Message, Part, Picture, Text, Thinking, ToolCall, ToolResult, user
from tests.agent_core.asking import assistant

MAKERS = ("openai", "anthropic", "gemini", "house")


SIGNATURES = (None, "reasoning", "sig", "redacted:x", "responses:rs_1:enc")


words = st.sampled_from(["", " ", "yes", "look at this", "ü\n\n“x”"])


thinking = st.builds(
    lambda text, maker, signature: Thinking(text=text, provider=maker, signature=signature),
    words,
    st.sampled_from(MAKERS),
    st.sampled_from(SIGNATURES),
)


shown = st.sampled_from(
    [
        Picture(ref=ref, path=f"incoming/{ref}.png", mime="image/png", size=4)
        for ref in ("kept", "gone")
    ]
)


PICTURES = {"kept": "iVBORw0KGgo="}


arguments = st.sampled_from(["{}", '{"a": 1}', "[1]", '{"a": ', ""])


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Conversations as turns leave them: steered (users in a row), stopped in the middle of calls,
    resumed, begun by the agent, with thinking of any provider."""
    out: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["user", "user", "says", "calls", "calls"]))
        if kind == "user":
            out.append(user(draw(words), tuple(draw(st.lists(shown, max_size=2)))))
            continue
        parts: list[Part] = list(draw(st.lists(thinking, max_size=2)))
        parts += [Text(text=text) for text in draw(st.lists(words, max_size=2))]
        ids: list[str] = []
        if kind == "calls":
            for _ in range(draw(st.integers(1, 3))):
                parts += draw(st.lists(thinking, max_size=1))
                number += 1
                ids.append(f"c{number}")
                call = ToolCall(id=ids[-1], name="look", arguments=draw(arguments))
                parts.append(call)
        out.append(assistant(*parts))
        answered = draw(st.permutations(ids))[: draw(st.integers(0, len(ids)))]
        results: list[Part] = [
            ToolResult(
                call_id=name,
                name="look",
                content=draw(words),
                error=draw(st.booleans()),
                pictures=tuple(draw(st.lists(shown, max_size=2))),
            )
            for name in answered
        ]
        if results and draw(st.booleans()):
            out.append(Message(role="tool", parts=tuple(results)))
        else:
            out += [Message(role="tool", parts=(one,)) for one in results]
    return tuple(out)
