"""A person who is erased: what she leaves in a store and in the folder, and what others do."""

import json
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_core.journal import Amended, Answered, Noted
from agent_core.messages import Message, Text, user
from agent_core.plan_edit import PlanEdit
from agent_core.questions import Answer, Approval, Decision, Proposal
from gateway.access.access import Accounts, Identity, LetIn
from gateway.jobs_port import Job
from gateway.messages import (
    Conversation,
    Firing,
    JobReported,
    MessageReceived,
    Quote,
    Sender,
    Terms,
)
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.store.rows import (
    AuditRow,
    Changes,
    ConversationRow,
    Letter,
    RecordRow,
    TurnStatus,
    name_brought,
    name_report,
)
from gateway.store.statements import encode
from gateway.views import ReplyView, ReportView
from tests.contracts.store_values import START, place, question, spoken, turn, view

NONCE = "zq-secret-7731-ö"
SAID = f'my word is {NONCE} and "more"'
TITLE = f"the day of {NONCE}"
"""Not NONCE alone: as words of hers it would be cut from everything else."""
REASON = f"never run {NONCE} here"
SHORT = "zq-short-17"
"""Too short to be searched for in others' words."""
OTHER = "what Bob wrote stays here"
ADA, ADA2 = Sender(platform="test", id="ada", name="Ada"), Sender(platform="web", id="ada2")
BOB = Sender(platform="test", id="bob", name="Bob")
GROUP = place("crowd")


def say(
    sender: Sender, where: Conversation, text: str, n: str, quote: Quote | None = None
) -> MessageReceived:
    return MessageReceived(
        conversation=where, sender=sender, event=f"e{n}", message=f"m{n}", text=text, reply_to=quote
    )


async def take_turn(
    store: Store, said: MessageReceived, name: str, n: int, status: TurnStatus = "done"
) -> None:
    """A turn of `said`, with what it leaves everywhere."""
    (kept,) = await store.accept([said])
    opened = await store.acquire(said.conversation.id, "me", 30)
    assert opened is not None
    text = said.text if said.reply_to is None else f"> {said.reply_to.text}\n{said.text}"
    begun = replace(
        turn(name, status),
        sender=said.sender.key,
        sender_name=said.sender.name,
        text=said.text[:60],
    )
    noted = RecordRow(turn=name, n=0, record=Noted(key="k", value=encode_raw(text)))
    shown = replace(view("reply", n + 1), turn=name, view=ReplyView(text=f"you said: {text}"))
    asked = replace(question(f"q-{name}"), turn=name, question=Decision(text=text, options=("a",)))
    entry = replace(
        spoken(n),
        turn=name,
        person=said.sender.key,
        messages=(user(f"{said.sender.name}: {text}"),),
    )
    changes = Changes(
        turns=(begun,), records=(noted,), views=(shown,), transcript=(entry,), done=(kept.seq,),
        questions=(asked,) if status == "parked" else (),
        row=ConversationRow(end=n + 1, shows=((0, n + 1),), title=said.text[:30]),
        audit=(AuditRow(at=START + n, who=said.sender.key, what="allowed", detail=text),),
    )  # fmt: skip
    assert await store.release(opened.lease, kept.seq, changes)


def encode_raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(encode(text))


async def leave_elsewhere(store: Store) -> None:
    """What Ada leaves in others' turns and chats: the reason of a denial, words in a plan, reports
    of her job, cards of her questions, and what a model made of her words."""
    answer = Answer(choice="deny", text=REASON, by=ADA.key, name=ADA.name)
    short = replace(answer, text=SHORT)
    edit = PlanEdit(action="add", text=REASON)
    for n, (name, records) in enumerate(
        {
            "denied": (Answered(key="a#answer", asked="a", answer=answer),),
            "short": (Answered(key="a#answer", asked="a", answer=short),),
            "amended": (Amended(key="plan#edit", edit=edit, by=ADA.key),),
        }.items()
    ):
        where = place(f"others-{name}")
        await take_turn(store, say(BOB, where, OTHER, f"o{n}"), f"t-{name}", 0)
        opened = await store.acquire(where.id, "me", 30)
        assert opened is not None
        told = RecordRow(turn=f"t-{name}", n=1, record=records[0])
        result = Message(role="tool", parts=(Text(text=f"Denied by Ada: {REASON}"),))
        if name == "short":
            result = Message(role="tool", parts=(Text(text="Denied by Ada"),))
        entry = replace(spoken(1), turn=f"t-{name}", person=BOB.key, messages=(result,))
        changes = Changes(records=(told,), transcript=(entry,))
        assert await store.release(opened.lease, opened.last, changes)
    for n, where in enumerate((place("reported"), replace(place("bobs-own"), private=True))):
        await take_turn(store, say(BOB, where, OTHER, f"r{n}"), f"t-r{n}", 0)
        report = ReportView(title="Her day", text=f"She said {NONCE} in her report")
        brief = replace(report, text=SHORT)
        fired = JobReported(
            conversation=where, event=f"report:{n}", title="Her day", text=report.text, job="j1"
        )
        (kept,) = await store.accept([fired])
        opened = await store.acquire(where.id, "me", 30)
        assert opened is not None
        views = (
            replace(view(name_report("j1", "s"), 3), turn=f"row-{kept.seq}", view=report),
            replace(view(name_report("j1", "r"), 5), turn=f"row-{kept.seq}", view=brief),
            replace(
                view("card", 4), turn=name_brought("q-t7"), view=ReplyView(text=f"curl {NONCE}")
            ),
        )
        entry = replace(spoken(1), turn="", person="", messages=(user(report.text),))
        changes = Changes(views=views, transcript=(entry,), done=(kept.seq,))
        assert await store.release(opened.lease, kept.seq, changes)
    opened = await store.acquire(GROUP.id, "me", 30)
    assert opened is not None
    firing = Firing(job="j1", slot="s", title=TITLE, terms=Terms(script=f"echo {NONCE}"))
    run = replace(turn("t8", "done"), sender=ADA.key, firing=firing)
    asked = replace(
        question("q-t8"), turn="t7", entitled=(ADA.key,),
        question=Decision(text=f"curl {NONCE}", options=("a",)),
    )  # fmt: skip
    told = f"Still waiting: curl http://example.com/{NONCE}"
    call = Proposal(
        call_id="c", tool="bash", digest="d", risk="high", reason="It reaches the network.",
        arguments=json.dumps({"command": f"curl http://example.com/{NONCE}"}),
    )  # fmt: skip
    approval = replace(asked, id="q-t9", question=Approval(proposals=(call,)))
    notice = replace(view("notice", 9), turn="row-99", view=ReplyView(text=told))
    changes = Changes(turns=(run,), questions=(asked, approval), views=(notice,))
    assert await store.release(opened.lease, opened.last, changes)


async def talk(store: Store, home: Path) -> None:
    """Ada alone and with Bob; what she left elsewhere."""
    own = replace(place("home"), private=True)
    linked = replace(place("page"), platform="web", private=True)
    bobs = replace(place("bobs"), private=True)
    await take_turn(store, say(ADA, own, SAID, "1"), "t1", 0)
    await take_turn(store, say(ADA, own, SAID, "2"), "t2", 1, "parked")
    await take_turn(store, say(ADA2, linked, SAID, "3"), "t3", 0)
    await take_turn(store, say(BOB, bobs, OTHER, "4"), "t4", 0)
    await take_turn(store, say(ADA, GROUP, SAID, "5"), "t5", 0)
    quote = Quote(message="m5", author="Ada", text=SAID)
    await take_turn(store, say(BOB, GROUP, OTHER, "6", quote), "t6", 1)
    await take_turn(store, say(ADA, GROUP, SAID, "7"), "t7", 2, "parked")
    await store.accept([say(ADA, GROUP, SAID, "8"), say(BOB, GROUP, OTHER + " too", "9", quote)])
    await store.keep_letter(
        Letter(id="l1", kind="message", conversation=GROUP.id, name="0", at=START, why="test",
               payload=encode(say(ADA, GROUP, SAID, "10")))
    )  # fmt: skip
    for key, body in {
        "memory:own:test:ada": f'{{"memory":["{NONCE}"]}}'.encode(),
        "memory:own:web:ada2": f'{{"memory":["{NONCE}"]}}'.encode(),
        "memory:own:test:bob": b'{"memory":["likes tea"]}',
        "person:test:ada": encode(LetIn(role="user", name=NONCE, by="x", at=START)),
        "identity:test:ada": encode(Identity(person="p1")),
        "identity:web:ada2": encode(Identity(person="p1")),
        "accounts:p1": encode(Accounts(keys=(ADA.key, ADA2.key))),
        "zone:test:ada": NONCE.encode(),
        "zonetold:web:ada2": NONCE.encode(),
        "sessions:web:ada2": f'[{{"id":"s","device":"{NONCE}","began":0,"expires":0}}]'.encode(),
    }.items():
        await store.put(key, body)
    job = Job(id="j1", owner=ADA, conversation=GROUP.id, title=TITLE, prompt=SAID,
              schedule="* * * * *", zone="UTC", version="1")  # fmt: skip
    assert await make_jobs(store).commit(None, job, ())
    await leave_elsewhere(store)
    upload = home / "uploads" / "ada2" / "s" / "notes.txt"
    upload.parent.mkdir(parents=True)
    upload.write_text(SAID)
