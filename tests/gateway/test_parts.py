"""Which inbox rows are one message: albums and cut-up pastes, and nothing else."""

from collections import deque

import pytest
from msgspec.structs import replace

from gateway.conversation.inbox.parts import (
    LONG,
    MAX_OWN,
    join_rows,
    render_quote,
    render_words,
    settles_in,
    take_whole,
)
from gateway.conversation.inbox.unfinished import is_unfinished
from gateway.conversation.state import WaitingRows
from gateway.messages import (
    Attachment,
    Conversation,
    JobFired,
    MessageReceived,
    Quote,
    Sender,
)
from gateway.store.rows import InboxRow

WHERE = Conversation(platform="telegram", account="1", channel="7", private=True)


def row(
    seq: int, text: str, at: float = 0.0, *, album: str = "", by: str = "7", file: str = ""
) -> InboxRow:
    files = (Attachment(ref=file, name=file),) if file else ()
    return InboxRow(
        seq=seq,
        at=at,
        inbound=MessageReceived(
            conversation=WHERE,
            sender=Sender(platform="telegram", id=by),
            event=f"e{seq}",
            message=str(seq),
            text=text,
            attachments=files,
            album=album,
        ),
    )


def seqs(*rows: InboxRow) -> list[int]:
    return [one.seq for one in take_whole(deque(rows))]


def test_plain_messages_stay_apart() -> None:
    assert seqs() == []
    assert seqs(row(1, "a"), row(2, "b")) == [1]


def test_an_album_is_one_message_in_any_time() -> None:
    parts = (row(1, "look", album="A", file="x"), row(2, "", 0.4, album="A", file="y"))
    assert seqs(*parts, row(3, "and?")) == [1, 2]
    assert seqs(*parts, row(3, "", album="B")) == [1, 2]
    whole_message = join_rows(parts).inbound
    assert isinstance(whole_message, MessageReceived)
    assert whole_message.text == "look" and whole_message.message == "1"
    assert [file.name for file in whole_message.attachments] == ["x", "y"]


def test_a_paste_goes_on_within_a_second_by_the_same_person() -> None:
    first = row(1, "x" * LONG, 10.0)
    assert seqs(first, row(2, "rest", 10.9)) == [1, 2]
    assert seqs(first, row(2, "y" * LONG, 10.9), row(3, "rest", 11.8)) == [1, 2, 3]
    assert seqs(first, row(2, "rest", 11.1)) == [1]
    assert seqs(first, row(2, "rest", 10.9, by="8")) == [1]
    assert seqs(row(1, "x" * (LONG - 1), 10.0), row(2, "rest", 10.1)) == [1]
    joined_row = join_rows([first, row(2, "rest", 10.9)]).inbound
    assert isinstance(joined_row, MessageReceived)
    assert joined_row.text == "x" * LONG + "\nrest"


def test_a_part_is_waited_for_and_no_longer_than_a_second() -> None:
    assert settles_in([row(1, "a", 10.0)], 10.0) == 0.0
    assert settles_in([row(1, "", 10.0, album="A")], 10.2) == pytest.approx(0.8)
    assert settles_in([row(1, "x" * LONG, 10.0)], 10.2) == pytest.approx(0.8)
    assert settles_in([row(1, "x" * LONG, 10.0), row(2, "end", 10.1)], 10.2) == 0.0
    assert settles_in([row(1, "", 10.0, album="A")], 11.5) == 0.0


def test_words_that_a_press_stands_for_are_whole() -> None:
    pressed = row(1, "x" * LONG)
    pressed = replace(pressed, inbound=replace(pressed.inbound, message=""))
    assert settles_in([pressed], 0.0) == 0 and seqs(pressed, row(2, "and more")) == [1]


def forwarded(seq: int, text: str, at: float, author: str = "Bob") -> InboxRow:
    quote = Quote(message="", author=author, text=text, forwarded=True)
    one = row(seq, "", at)
    return replace(one, inbound=replace(one.inbound, reply_to=quote))


def test_what_is_forwarded_belongs_to_the_comment_before_it() -> None:
    parts = (
        row(1, "who is right?", 5.0),
        forwarded(2, "I am", 5.2),
        forwarded(3, "no", 5.4, "Eve"),
    )
    assert seqs(*parts, row(4, "well?", 5.5)) == [1, 2, 3]
    assert seqs(row(1, "hello", 5.0), forwarded(2, "late", 6.5)) == [1]
    joined = join_rows(parts).inbound
    assert isinstance(joined, MessageReceived)
    said = "who is right?\n> Forwarded, by Bob:\n> I am\n> Forwarded, by Eve:\n> no"
    assert render_words(joined) == said
    alone = join_rows(parts[1:]).inbound
    assert isinstance(alone, MessageReceived)
    assert render_words(alone) == said.partition("\n")[2]
    assert settles_in(parts[1:2], 5.3) > 0, "others may follow"


def test_what_is_forwarded_belongs_to_the_comment_after_it() -> None:
    """As Discord sends it."""
    parts = (forwarded(1, "I am", 5.0), forwarded(2, "no", 5.2, "Eve"), row(3, "who is?", 5.4))
    assert seqs(*parts, row(4, "well?", 5.5)) == [1, 2, 3]
    assert seqs(parts[0], row(2, "mine", 5.1, by="8")) == [1]
    assert seqs(parts[0], row(2, "later", 6.5)) == [1]
    joined = join_rows(parts).inbound
    assert isinstance(joined, MessageReceived) and joined.message == "3"
    said = "who is?\n> Forwarded, by Bob:\n> I am\n> Forwarded, by Eve:\n> no"
    assert render_words(joined) == said


def test_of_its_own_words_the_agent_hears_the_beginning_and_of_a_marked_part_all() -> None:
    long = "word " * 200
    assert len(render_quote(Quote(message="1", text=long, mine=True))) < MAX_OWN + 30
    marked = render_quote(Quote(message="1", text=long, mine=True, marked=True))
    assert marked.startswith("> You:") and long.strip() in marked
    assert render_quote(Quote(message="1", author="Ann")) == ""


UNFINISHED = (
    "hey", "Hi!", "hallo", "guten Morgen", "Bonjour,", "olá", "привет", "你好", "can you",
    "hey, can you", "kannst du mal", "könntest du mir bitte", "look at the log and", "peux-tu",
    "puedes", "você pode", "ты можешь", "帮我", "first,", "wir brauchen eine",
)  # fmt: skip
FINISHED = (
    "", "list files", "thank you", "how are you", "was ist das", "schalte ein", "y", "option a",
    "look at the log", "hey, can you look at the log for me, please?", "hey you look at the log",
    "and then the rest of it, which is more than forty characters, and", "first", "ok", "stop",
    "what is it for", "help me please", "hello world",
)  # fmt: skip


def test_a_greeting_or_a_broken_off_sentence_is_unfinished() -> None:
    texts = (*UNFINISHED, *FINISHED)
    assert {text for text in texts if is_unfinished(text)} == set(UNFINISHED)


def test_what_comes_soon_after_an_unfinished_message_joins_it() -> None:
    rows = deque((row(1, "hey"), row(2, "can you", 1.5), row(3, "look", 3.0), row(4, "now", 3.1)))
    assert [one.seq for one in take_whole(rows, 2.0)] == [1, 2, 3]
    assert [one.seq for one in take_whole(rows, 1.0)] == [1]
    assert [one.seq for one in take_whole(rows)] == [1]
    joined = join_rows(take_whole(rows, 2.0)).inbound
    assert isinstance(joined, MessageReceived) and joined.text == "hey\ncan you\nlook"
    assert settles_in([rows[0]], 0.1) == 0.0, "nobody waits for the rest"
    for other in (row(2, "look", 1.0, by="8"), row(2, "look", -1.0), row(2, "look", 2.1)):
        assert len(take_whole(deque((rows[0], other)), 2.0)) == 1
    assert len(take_whole(deque((row(1, "hey", file="x"), row(2, "look"))), 2.0)) == 1
    assert len(take_whole(deque((row(1, "hey"), row(2, "", 1.0, file="x"))), 2.0)) == 2


def run(seq: int) -> InboxRow:
    fired = JobFired(conversation=WHERE, event=f"e{seq}", job="j", due=0.0, text="look")
    return InboxRow(seq=seq, at=0.0, inbound=fired)


def order(*rows: InboxRow) -> list[int]:
    """The first rows of all turns, in the order in which they are taken up."""
    waiting, taken = WaitingRows(rows), list[int]()
    while (first := waiting.put_next_first()) is not None:
        taken.append(first.seq)
        for _ in take_whole(waiting):
            waiting.popleft()
    return taken


def test_messages_and_runs_take_turns() -> None:
    assert order(row(1, "a"), row(2, "b")) == [1, 2] and order(run(1), run(2)) == [1, 2]
    assert order(run(1), run(2), run(3), row(4, "a"), row(5, "b")) == [1, 4, 2, 5, 3]
    assert order(row(1, "a"), run(2), row(3, "b"), row(4, "c")) == [1, 2, 3, 4]


def test_no_run_cuts_a_message_in_two() -> None:
    album = [row(n, "", album="A", file="x") for n in (1, 3, 5)]
    assert order(album[0], run(2), album[1], run(4), album[2]) == [1, 2, 4]
    assert order(run(1), row(2, "x" * LONG), run(3), row(4, "rest")) == [1, 2, 3]
