"""A link whose words are the address of another site says where it leads, on every surface."""

from collections.abc import Callable

import msgspec
import pytest

from adapters.discord.render import render as render_discord
from adapters.links import tell_targets
from adapters.slack.render import render as render_slack
from adapters.telegram.render import render as render_telegram
from adapters.telegram.render import render_draft
from adapters.web.render import to_html
from gateway.views import PlanStep, PlanView, ReplyView, View

BAD = "[https://bank.example/login](https://evil.example/x)"
TOLD = "https://bank.example/login (evil.example)"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (BAD, f"[{TOLD}](https://evil.example/x)"),
        (f"- [ ] open {BAD} now", f"- [ ] open [{TOLD}](https://evil.example/x) now"),
        ("[**bank.com**](<http://evil.de>)", "[**bank.com** (evil.de)](<http://evil.de>)"),
        ("[www.bank.test](http://a@evil.de:8/)", "[www.bank.test (evil.de)](http://a@evil.de:8/)"),
        (
            "[bank.com](https://bank.com(a)@evil.de/x)",
            "[bank.com (evil.de)](https://bank.com(a)@evil.de/x)",
        ),
        *(
            (f"[{words}](http://evil.de)", f"[{words} (evil.de)](http://evil.de)")
            for words in (
                "\uff48ttps://bank.com",
                "bank\u3002com",
                "bank\uff0ecom",
                "bank\uff61com",
                "https&colon;//bank.com",
                "bank&period;com",
                "bank&#46;com",
                "ban\u200bk.com",
                "\u202ebank.com\u202c",
                "b\u00adank.com",
            )
        ),
        ('[bank.com](http://evil.de "t")', '[bank.com (evil.de)](http://evil.de "t")'),
    ],
)
def test_the_words_say_where_it_leads(written: str, shown: str) -> None:
    assert tell_targets(written) == shown


@pytest.mark.parametrize(
    "text",
    [
        "[the docs](https://docs.example/a), [README.md](https://host.example/README.md)",
        "[bank.com](https://www.bank.com/x) and [www.bank.com](https://bank.com)",
        "[bank.com](https://login.bank.com)",
        f"`{BAD}`",
        f"```\n{BAD}\n```",
        "[bank.com] (https://evil.de)",
        "[bank.com](mailto:a@evil.de)",
        "[bank.com](https://[::1)",
    ],
)
def test_other_links_stay(text: str) -> None:
    assert tell_targets(text) == text


@pytest.mark.parametrize(
    "text", ["See [bank.com](https://bank.com/a) or [www.bank.com](<https://login.bank.com>)."]
)
def test_a_link_that_is_still_being_written_is_not_changed(text: str) -> None:
    assert [tell_targets(text[:end]) for end in range(len(text))] == [
        text[:end] for end in range(len(text))
    ]


DRAW: dict[str, Callable[[View], tuple[bytes, ...]]] = {
    "slack": render_slack,
    "discord": render_discord,
    "telegram": render_telegram,
    "telegram, rich": lambda view: render_telegram(view, rich=True),
}


@pytest.mark.parametrize("on", DRAW)
def test_so_it_is_in_answers_and_steps(on: str) -> None:
    plan = PlanView(title="Pay", steps=(PlanStep(id="a", text=f"Open {BAD}"),))
    for view in (plan, ReplyView(text=f"- [ ] {BAD}\n\n| a | b |\n|---|---|\n| {BAD} | c |")):
        assert b"(evil.example)" in b"".join(DRAW[on](view)).replace(b"\\", b"")


def test_so_it_is_on_the_page_and_in_a_draft() -> None:
    assert f">{TOLD}</a>" in to_html(BAD)
    assert TOLD.encode() in msgspec.json.encode(render_draft(BAD))


@pytest.mark.parametrize("sign", ["[", "[a](", "[a.", "[https://a", "](", "[a.com](http://b", "`["])
def test_many_signs_are_read_soon(sign: str) -> None:
    assert tell_targets(sign * 20_000)
