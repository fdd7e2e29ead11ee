"""HTML of texts that are never trusted: escaped words, markdown, and the page around them."""

from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from msgspec import Struct

Json = dict[str, Any]
PHONE = 360


class Look(Struct, frozen=True):
    """In front of which screen a person sits."""

    device: str
    scheme: str

    @property
    def name(self) -> str:
        return f"{self.device}-{self.scheme}"

    def width(self, desktop: int) -> int:
        """Of a screen that is `desktop` pixels wide where there is room."""
        return PHONE if self.device == "phone" else desktop


LOOKS = tuple(
    Look(device, scheme) for device in ("desktop", "phone") for scheme in ("light", "dark")
)
PAGE = """
* { box-sizing: border-box; margin: 0; }
html { overflow: hidden; }
body { display: inline-flex; gap: 16px; padding: 16px; background: #9aa3ab; align-items: start;
  font: 14px/1.4 "Liberation Sans", sans-serif; }
.frame > h2 { font-size: 13px; font-weight: 600; padding: 2px 4px 6px; color: #111; }
.screen { border-radius: 6px; overflow: hidden; padding: 12px; overflow-wrap: anywhere; }
.screen code, .screen pre { font-family: "Liberation Mono", monospace; font-size: .9em; }
.screen pre { white-space: pre-wrap; }
.screen p + p, .screen p + ul, .screen p + pre { margin-top: .5em; }
.screen ul, .screen ol { padding-left: 1.6em; }
.screen table { border-collapse: collapse; margin: 4px 0; }
.screen th, .screen td { border: 1px solid #8886; padding: 3px 8px; text-align: left; }
"""
"""The table on which the screens lie, and what is the same on all of them."""


def words(text: object) -> str:
    """`text` as itself."""
    return escape(str(text))


def box(name: str, inside: str, style: str = "", tag: str = "div") -> str:
    """An element of the class `name`; `inside` is HTML, nothing stands for nothing."""
    look = f' style="{words(style)}"' if style else ""
    return f'<{tag} class="{words(name)}"{look}>{inside}</{tag}>' if inside else ""


def marked(text: str) -> str:
    """Markdown as chats read it: a line ends where it ends; no HTML, no pictures."""
    return str(_reader().render(text))


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "breaks": True})
    return reader.enable(["table", "strikethrough"]).disable("image")


def page(css: str, frames: Iterable[tuple[str, str]], *, width: int, scheme: str) -> str:
    """One document: each frame's screen (HTML) below its title, side by side."""
    shown = "".join(
        f'<section class="frame"><h2>{words(title)}</h2>{box("screen", screen)}</section>'
        for title, screen in frames
    )
    look = f"{PAGE}.screen {{ width: {width}px; min-height: 120px; }}{css}"
    head = f'<!doctype html><meta charset="utf-8"><style>{look}</style>'
    return f'{head}<body class="{words(scheme)}">{shown}'
