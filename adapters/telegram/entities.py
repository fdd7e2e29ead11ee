"""Telegram text: a string and its entities, built from Markdown and from fixed pieces. Pure.

Entities and not HTML, so nothing that a model writes can break a parser. The converter is imported
when the first text with Markdown in it comes.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from adapters.formulas import write_dollars
from adapters.text import measure_utf16, split
from gateway.texts.signs import visible
from gateway.views import MentionedPerson

if TYPE_CHECKING:
    from telegramify_markdown import MessageEntity, RenderConfig

LIMIT = 4096
MAX_ENTITIES = 100
MAX_CONVERTED = 4 * LIMIT

MARKED = re.compile(r"[*_`~|<>\[\]&\\$]|^(?: {4}|\t| *[-+=#])", re.MULTILINE)
"""Text without any of these means the same with and without conversion."""

LESS, BAR = "\ufdd0", "\ufdd1"
"""Noncharacters that stand for `<` and `|` during the conversion, which drops HTML tags and takes
`||` for a spoiler. As long as the originals, so that offsets stay right, in code too."""
TAGS = re.compile(r"<(?!https?://[^\s<>]+>)")
SPOILERS = re.compile(r"^(?![ \t]*\|).*\|\|.*$", re.MULTILINE)
RESTORE = str.maketrans({LESS: "<", BAR: "|"})
WEB = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)
MENTION = re.compile(r"(?<![\w/.@])@[A-Za-z]\w{2,31}")
PERSON, NAME = re.compile(r"\d{1,16}", re.ASCII), 64
"""Matches a person's id; maximum characters of a name."""
SILENT = {"code", "pre", "text_link"}
"""Entities in which Telegram looks for no mentions."""


class NamedUser(msgspec.Struct, frozen=True, kw_only=True):
    """The User of a text_mention, of whom the id counts."""

    id: int
    is_bot: bool
    first_name: str


class Entity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A MessageEntity; `offset` and `length` in UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    user: NamedUser | None = None


class Marked(msgspec.Struct, frozen=True):
    """One text with its entities."""

    text: str
    entities: tuple[Entity, ...] = ()

    def __add__(self, other: "Marked | str") -> "Marked":
        if isinstance(other, str):
            return Marked(self.text + other, self.entities)
        shift = measure_utf16(self.text)
        moved = (
            msgspec.structs.replace(entity, offset=entity.offset + shift)
            for entity in other.entities
        )
        return Marked(self.text + other.text, (*self.entities, *moved))

    @property
    def size(self) -> int:
        """Its length in UTF-16 units, as Telegram's limits count."""
        return measure_utf16(self.text)


def style_text(text: str, kind: str, language: str = "") -> Marked:
    """`text` under one entity."""
    if not text.strip():
        return Marked(text)
    return Marked(
        text, (Entity(type=kind, offset=0, length=measure_utf16(text), language=language),)
    )


def name_mentions(people: Iterable[MentionedPerson]) -> Marked:
    """Mentions of people by their ids, which ping them whether they have a @name or not."""
    whole = Marked("")
    for one in people:
        if not PERSON.fullmatch(one.id):
            continue
        name = visible(" ".join(one.name.split()))[:NAME] or one.id
        user = NamedUser(id=int(one.id), is_bot=False, first_name=name)
        mention = Entity(type="text_mention", offset=0, length=measure_utf16(name), user=user)
        whole = whole + (", " if whole.text else "") + Marked(name, (mention,))
    return whole


def join_texts(pieces: list[Marked], between: str = "\n") -> Marked:
    """`pieces` that hold anything, in one text."""
    whole = Marked("")
    for piece in pieces:
        if piece.text:
            whole = whole + (Marked(between) + piece if whole.text else piece)
    return whole


def hush_mentions(marked: Marked) -> Marked:
    """Turn @names into code, so that they are shown and ping nobody."""
    if "@" not in marked.text:
        return marked
    silent = [e for e in marked.entities if e.type in SILENT]
    added = []
    for found in MENTION.finditer(marked.text):
        offset, length = measure_utf16(marked.text[: found.start()]), measure_utf16(found.group())
        if not any(e.offset < offset + length and offset < e.offset + e.length for e in silent):
            added.append(Entity(type="code", offset=offset, length=length))
    if not added:
        return marked
    room = [*added, *marked.entities][:MAX_ENTITIES]
    return Marked(marked.text, tuple(sorted(room, key=lambda e: (e.offset, -e.length))))


def from_markdown(markdown: str) -> list[Marked]:
    """Convert `markdown` to as many texts as Telegram's limit requires; [] for an empty one."""
    plain = Marked(markdown.strip())
    if len(markdown) <= LIMIT // 2 and not MARKED.search(markdown):
        return [plain] if plain.text else []
    return [
        text for part in split_markdown(markdown) for text in convert_part(part)
    ] or split_marked(plain)


def split_markdown(markdown: str) -> list[str]:
    """`markdown` in parts that each fit into a message, unconverted."""
    return split(markdown, LIMIT, measure_utf16)


def convert_part(part: str) -> list[Marked]:
    """Convert one part: usually to one text, to more if its tables grow."""
    return split_marked(_convert_markdown(part))


def convert_whole(markdown: str) -> Marked:
    """Convert `markdown` to one text, however long. Above MAX_CONVERTED characters it stays as
    written, for the converter's time grows with their square."""
    if len(markdown) > MAX_CONVERTED or not MARKED.search(markdown):
        return Marked(markdown.strip())
    return _convert_markdown(markdown)


def convert_line(line: str) -> Marked:
    """Convert a line, in which nothing is a heading, a quote, a block or left out."""
    opened = convert_whole(f"({line.strip()}")  # a bracket starts no block and splits no emphasis
    moved = (msgspec.structs.replace(one, offset=one.offset - 1) for one in opened.entities)
    return Marked(opened.text[1:], tuple(moved))


def split_marked(marked: Marked) -> list[Marked]:
    """Split into texts within the limit, at line borders; entities go on in the next text."""
    if marked.size <= LIMIT:
        return [Marked(marked.text, marked.entities[:MAX_ENTITIES])] if marked.text.strip() else []
    from telegramify_markdown import MessageEntity, split_entities

    entities = [MessageEntity(**msgspec.to_builtins(entity)) for entity in marked.entities]
    return [
        Marked(text, tuple(_filter_entities(found, LIMIT))[:MAX_ENTITIES])
        for text, found in split_entities(marked.text, entities, LIMIT)
    ]


def _convert_markdown(markdown: str) -> Marked:
    from telegramify_markdown import convert

    guarded = SPOILERS.sub(
        lambda line: line.group().replace("||", BAR + BAR), TAGS.sub(LESS, write_dollars(markdown))
    )
    text, entities = convert(guarded, config=_looks())
    shown = text.rstrip().translate(RESTORE)
    return Marked(shown, tuple(_filter_entities(entities, measure_utf16(shown))))


def _filter_entities(entities: "list[MessageEntity]", size: int) -> list[Entity]:
    """Keep the entities within `size` units that ping nobody, and links that Telegram accepts."""
    kept = []
    for entity in entities:
        url = (entity.url or "").translate(RESTORE)
        if entity.type in {"text_mention", "custom_emoji", "spoiler"}:
            continue
        if entity.type == "text_link" and not WEB.fullmatch(url):
            continue
        length = min(entity.length, size - entity.offset)
        if length <= 0:
            continue
        language = (entity.language or "").translate(RESTORE)
        kept.append(
            Entity(
                type=entity.type,
                offset=entity.offset,
                length=length,
                url=url,
                language=language,
            )
        )
    return kept


@cache
def _looks() -> "RenderConfig":
    """The converter's marks in our style: no decoration."""
    from telegramify_markdown import RenderConfig

    looks = RenderConfig.isolated()
    symbols = looks.markdown_symbol
    symbols.heading_level_1 = symbols.heading_level_2 = ""
    symbols.heading_level_3 = symbols.heading_level_4 = ""
    symbols.image, symbols.unordered_list_item = "[image] ", "•"
    symbols.task_completed, symbols.task_uncompleted = "☑", "☐"
    return looks
