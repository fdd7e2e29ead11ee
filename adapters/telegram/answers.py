"""Renders replies, reports and files as native payloads. Pure.

A part of an answer with a table in it is a rich message where the server has them. Nothing is cut
off: an answer of too many messages comes as a file after its beginning.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from adapters.calls import CALLS_FILE
from adapters.telegram.blocks import Block, Span, fits, of_markdown, paragraph, with_table
from adapters.telegram.entities import (
    LIMIT,
    MARKED,
    MAX_ENTITIES,
    Marked,
    convert_part,
    convert_whole,
    hush_mentions,
    join_texts,
    split_markdown,
    split_marked,
    style_text,
)
from adapters.telegram.payloads import (
    Medium,
    TelegramUpload,
    Upload,
    message,
    messages,
    rich_message,
    upload,
)
from adapters.text import cut_beginning
from gateway.texts import say
from gateway.views import Media, MediaFile, ReplyView, ReportView

MAX_MESSAGES = 5
BEGINNING = 1
"""Messages in which an answer grows; one of more than MAX_MESSAGES is shortened to that many, and a
file."""

CAPTION = 1024
MAX_FILE = 50 << 20
MAX_PHOTO = 10 << 20
ALBUM = 10
PHOTOS = ("image/png", "image/jpeg", "image/webp")


def reply(view: ReplyView, *, rich: bool) -> tuple[bytes, ...]:
    """Render the answer in parts. A growing one is shown as far as it will certainly stay one
    message."""
    text = view.text
    if len(text) <= LIMIT // 2 and not view.note and not MARKED.search(text):
        return messages([Marked(text.strip())])  # most answers
    growing = view.state == "streaming"
    shown = list(islice(_parts(text, rich=rich), BEGINNING if growing else MAX_MESSAGES + 1))
    if len(shown) > MAX_MESSAGES:
        begun = _encode_payloads(_begin(text, rich=rich))
        return (*begun, _document(text, "answer.md", view.language), *messages(_note(view.note)))
    return _encode_payloads(_with_note(shown, view.note))


def report(view: ReportView, *, rich: bool) -> tuple[bytes, ...]:
    """Render a report like a reply, under its title."""
    title = " ".join(view.title.split())
    if rich and len(view.text) < 2 * MAX_MESSAGES * LIMIT:
        blocks = (
            *((Block(type="heading", text=title, size=3),) if title else ()),
            *of_markdown(view.text),
            *((Block(type="footer", text=view.note),) if view.note.strip() else ()),
        )
        if fits(blocks):
            return (rich_message(blocks),)
    shown = list(islice(_parts(view.text, rich=False), MAX_MESSAGES + 1))
    head = split_marked(style_text(title, "bold"))
    whole = shown
    if len(shown) > MAX_MESSAGES:
        shown = _begin(view.text, rich=False)
    first = shown[0] if shown and isinstance(shown[0], Marked) else Marked("")
    opened = join_texts([*head[-1:], first], "\n\n")
    shown = [opened, *shown[1:]] if opened.size <= LIMIT else [*head, *shown]
    if len(whole) <= MAX_MESSAGES:
        return _encode_payloads(_with_note(shown, view.note))
    document = _document(view.text, "report.md", view.language)
    return (*_encode_payloads(shown), document, *messages(_note(view.note)))


def media(view: Media) -> tuple[bytes, ...]:
    """The caption with the first file; pictures and other files in albums of their kind."""
    small = [file for file in view.files if file.size <= MAX_FILE]
    large = [file for file in view.files if file.size > MAX_FILE]
    caption = convert_whole(view.caption.strip())
    above: tuple[bytes, ...] = ()
    if caption.size > CAPTION or not small:
        above, caption = messages(split_marked(caption)), Marked("")
    caption = hush_mentions(caption)
    calls = []
    for photos in (True, False):
        for album in _albums([file for file in small if _is_photo(file) == photos]):
            calls.append(_files(album, "photo" if photos else "document", caption))
            caption = Marked("")
    notes = [Marked("✕ " + _too_large(file, view.language)) for file in large]
    return (*above, *calls, *messages(split_marked(join_texts(notes))))


def _parts(text: str, *, rich: bool) -> Iterator[Marked | tuple[Block, ...]]:
    """`text` in messages, each rich or plain."""
    found = False
    for part in split_markdown(text):
        blocks = with_table(part) if rich else ()
        texts: Sequence[Marked | tuple[Block, ...]]
        if blocks:
            texts = [blocks]
        else:
            texts = (
                convert_part(part)
                if MARKED.search(part)
                else split_marked(Marked(part.strip("\n")))
            )
        found = found or bool(texts)
        yield from texts
    if not found:
        yield from split_marked(Marked(text.strip()))  # markup without visible text is shown raw


def _begin(text: str, *, rich: bool) -> list[Marked | tuple[Block, ...]]:
    return list(_parts(cut_beginning(text), rich=rich))[:BEGINNING]


def _with_note(
    shown: list[Marked | tuple[Block, ...]], note: str
) -> list[Marked | tuple[Block, ...]]:
    """The note under the last part, or after it."""
    if not note:
        return shown
    last = shown[-1] if shown else Marked("")
    if isinstance(last, Marked):
        ended = join_texts([last, *_note(note)], "\n\n")
        return [*shown[:-1], ended] if ended.size <= LIMIT else [*shown, *_note(note)]
    ended_rich = (*last, paragraph(Span(type="italic", text=note)))
    return [*shown[:-1], ended_rich] if fits(ended_rich) else [*shown, *_note(note)]


def _note(note: str) -> list[Marked]:
    return split_marked(style_text(note, "italic")) if note else []


def _encode_payloads(shown: Sequence[Marked | tuple[Block, ...]]) -> tuple[bytes, ...]:
    return tuple(
        message(one) if isinstance(one, Marked) else rich_message(one)
        for one in shown
        if not isinstance(one, Marked) or one.text.strip()
    )


def calls_file(text: str, language: str) -> tuple[bytes, ...]:
    """Render calls in full as a file."""
    source = TelegramUpload(name=CALLS_FILE, mime="text/plain", text=text)
    caption = say("whole_call", language)
    return (upload(Upload(method="sendDocument", caption=caption, files={"document": source})),)


def _document(text: str, name: str, language: str) -> bytes:
    source = TelegramUpload(name=name, mime="text/markdown", text=text)
    caption = say("whole_in_file", language)
    return upload(Upload(method="sendDocument", caption=caption, files={"document": source}))


def _is_photo(file: MediaFile) -> bool:
    """A GIF sent as a document moves, as a photo it does not."""
    return file.mime in PHOTOS and file.size <= MAX_PHOTO


def _albums(files: Sequence[MediaFile]) -> Iterator[list[MediaFile]]:
    """Groups of at most ten files that one call can carry."""
    album: list[MediaFile] = []
    for file in files:
        if len(album) == ALBUM or sum(one.size for one in album) + file.size > MAX_FILE:
            yield album
            album = []
        album.append(file)
    if album:
        yield album


def _files(album: Sequence[MediaFile], kind: str, caption: Marked) -> bytes:
    sources = [TelegramUpload(name=file.name, mime=file.mime, ref=file.ref) for file in album]
    text, entities = caption.text, caption.entities[:MAX_ENTITIES]
    if len(sources) == 1:
        method = "sendPhoto" if kind == "photo" else "sendDocument"
        one = Upload(
            method=method, caption=text, caption_entities=entities, files={kind: sources[0]}
        )
        return upload(one)
    media = [
        Medium(
            type=kind,
            media=f"attach://file{index}",
            caption="" if index else text,
            caption_entities=() if index else entities,
        )
        for index in range(len(sources))
    ]
    files = {f"file{index}": source for index, source in enumerate(sources)}
    return upload(Upload(method="sendMediaGroup", media=tuple(media), files=files))


def _too_large(file: MediaFile, language: str) -> str:
    size, most = file.size >> 20, MAX_FILE >> 20
    return say("file_too_large", language, name=file.name[:100], size=size, most=most)
