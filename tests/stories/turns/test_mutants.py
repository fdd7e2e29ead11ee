"""Each rule of the durable turn broken on purpose: its test in `test_rules` must fail then.

A mutant is one function of the product with one passage replaced, in a forked child. A passage
that is not there any more makes the test an error, so mutants follow the code.
"""

import functools
import inspect
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from msgspec.structs import replace

from agent_core.journal import Answered
from gateway.store.sqlite import SqliteStore
from tests.sampling import take
from tests.stories import rules

pytestmark = pytest.mark.timeout(60)

Mutant = Callable[[], None]
LONGEST = 20


def modules() -> list[ModuleType]:
    return [
        module
        for name, module in list(sys.modules.items())
        if module is not None and name.partition(".")[0] in ("agent_core", "gateway")
    ]


def owners(name: str) -> list[tuple[object, FunctionType]]:
    """Modules and classes that define a function `name`."""
    found: list[tuple[object, FunctionType]] = []
    for module in modules():
        here = [
            cls
            for cls in vars(module).values()
            if isinstance(cls, type) and cls.__module__ == module.__name__
        ]
        for owner in (module, *here):
            known = vars(owner).get(name)
            if isinstance(known, FunctionType) and known.__module__ == module.__name__:
                found.append((owner, known))
    return found


def code(name: str, old: str, new: str) -> Mutant:
    """The function `name` with `new` in place of `old`."""

    def apply() -> None:
        fits = [
            (owner, known, source)
            for owner, known in owners(name)
            if old in (source := textwrap.dedent(inspect.getsource(known)))
        ]
        assert len(fits) == 1, f"{name}: {old!r} is in {len(fits)} functions"
        owner, known, source = fits[0]
        made: dict[str, object] = {}
        exec(compile(source.replace(old, new, 1), name, "exec"), known.__globals__, made)
        for place in (owner, *modules()):
            if vars(place).get(name) is known:
                setattr(place, name, made[name])

    return apply


def text(old: str, new: str) -> Mutant:
    """Every string of a module with `new` in place of `old` (SQL)."""

    def apply() -> None:
        count = 0
        for module in modules():
            for name, value in list(vars(module).items()):
                if isinstance(value, str) and old in value and name != "__doc__":
                    setattr(module, name, value.replace(old, new))
                    count += 1
        assert count, f"{old!r} is nowhere"

    return apply


def both(*mutants: Mutant) -> Mutant:
    def apply() -> None:
        for mutant in mutants:
            mutant()

    return apply


def answers_do_not_run() -> None:
    """The turn's row is left out of the commit that records an answer."""
    submit = SqliteStore.submit

    def without(store: SqliteStore, lease: object, changes: object) -> object:
        if any(isinstance(row.record, Answered) for row in changes.records):
            changes = replace(changes, turns=())
        return submit(store, lease, changes)

    SqliteStore.submit = without


def no_break() -> None:
    """A failed commit does not stop later ones."""
    SqliteStore._break = lambda *_: None


MUTANTS: list[tuple[str, Mutant, Callable[..., None], tuple[str, ...]]] = [
    (
        "R01 released though a newer row is there",
        text("AND last <= ?3", "AND ?3 >= 0"),
        rules.test_R01_a_release_is_refused_for_newer_rows_only,
        (),
    ),
    (
        "R01 refused until the inbox is empty",
        text(
            "AND last <= ?3",
            "AND last <= ?3 AND NOT EXISTS"
            " (SELECT 1 FROM inbox WHERE conversation = ?2 AND state = 0)",
        ),
        rules.test_R01_a_release_is_refused_for_newer_rows_only,
        (),
    ),
    (
        "R02 the answer's commit leaves the turn parked",
        answers_do_not_run,
        rules.test_R02_an_answer_makes_its_turn_runnable_in_the_same_commit,
        (),
    ),
    (
        "R02 the park overwrites an answer",
        code("_park", "if any(journal.find(", "if False and any(journal.find("),
        rules.test_R02_an_answer_in_the_moment_of_parking_is_not_overwritten,
        (),
    ),
    (
        "R03 resumed before the inbox is read",
        code(
            "_serve",
            "    await self._absorb(self._opened.inbox)\n",
            "    for turn in list(self.state.turns):\n"
            "        await self._run_turn(await self.open(turn))\n"
            "    await self._absorb(self._opened.inbox)\n",
        ),
        rules.test_R03_what_came_in_is_read_before_a_turn_is_resumed,
        (),
    ),
    (
        "R04 an answer waits for the park",
        code("deliver_answer", "if future is not None and not future.done():", "if False:"),
        rules.test_R04_an_answer_continues_its_branch_while_a_sibling_works,
        (),
    ),
    (
        "R05 an expiry does not decide",
        code("expire", 'if question is None or question.status != "open":', "if True:"),
        rules.test_R05_the_first_row_decides,
        ("expired",),
    ),
    (
        "R06 an empty steer is not recorded",
        code("steer", "journal.defer(record)", "pass"),
        rules.test_R06_nothing_to_steer_is_a_record_too,
        (),
    ),
    (
        "R06 a message that steered stays queued",
        code("take_steers", "state.queue.remove(row)", "pass"),
        rules.test_R06_a_message_during_a_turn_lands_in_it_once,
        (),
    ),
    (
        "R07 every record is a commit",
        code("defer", "self._buffer.append(record)", "self._buffer.append(record); self.put()"),
        rules.test_R07_deferred_records_ride_in_order_on_the_next_barrier,
        (),
    ),
    (
        "R07 a barrier leaves the deferred behind",
        code("put", "batch = (*self._buffer, *records)", "batch = records"),
        rules.test_R07_deferred_records_ride_in_order_on_the_next_barrier,
        (),
    ),
    (
        "R08 any task may call the scope",
        code("check", "if task not in self.tasks:", "if False:"),
        rules.test_R08_turn_code_forks_only_by_parallel,
        (),
    ),
    (
        "R08 the first failure cuts the siblings off",
        code("parallel", "except (Suspend, Exception) as error:", "except Suspend as error:"),
        rules.test_R08_turn_code_forks_only_by_parallel,
        (),
    ),
    (
        "R09 a time-out is raised and not recorded",
        code(
            "tool",
            'made, outcome = ToolOutput(text=_describe_timeout(limit)), "timed_out"',
            "raise",
        ),
        rules.test_R09_a_limit_is_an_argument_and_its_outcome_a_record,
        (),
    ),
    (
        "R10 the last reason decides",
        code("suspend", "if self.dead is not None:", "if False:"),
        rules.test_R10_the_first_suspend_reason_decides_and_closes_every_branch,
        (),
    ),
    (
        "R10 an effect runs while a park unwinds",
        both(
            *(
                code(
                    name,
                    "if self.dead is not None:",
                    "if self.dead is not None and type(self.dead).__name__ != 'Parked':",
                )
                for name in ("check", "permit")
            )
        ),
        rules.test_R10_the_first_suspend_reason_decides_and_closes_every_branch,
        (),
    ),
    (
        "R11 the buffer is cleared after the commit stands",
        both(
            code("put", "self._buffer.clear()", "pass"),
            code(
                "barrier",
                "await asyncio.shield(asyncio.ensure_future(self.put(*records)))",
                "await asyncio.shield(asyncio.ensure_future(self.put(*records)));"
                " self._buffer.clear()",
            ),
        ),
        rules.test_R11_the_journal_changes_in_the_step_that_queues_the_commit,
        (),
    ),
    (
        "R11 a later commit passes after a failed one",
        no_break,
        rules.test_R11_after_a_failed_commit_no_later_one_of_the_lease_passes,
        (),
    ),
    (
        "R12 a key may be used twice",
        code("claim", "if key in self._used:", "if False:"),
        rules.test_R12_keys_come_from_data_and_records_know_their_call,
        (),
    ),
    (
        "R12 a record does not know its call",
        code("tool", "record.digest != digest", "record.digest == ''"),
        rules.test_R12_keys_come_from_data_and_records_know_their_call,
        (),
    ),
    (
        "R13 the brief is read live",
        code(
            "open",
            "read_brief(records)",
            "self.services.agent.brief(self.state.conversation, self.state.row.settings, row.text)",
        ),
        rules.test_R13_what_a_turn_reads_is_recorded_at_its_start,
        (),
    ),
    (
        "R13 the first run sees the live value",
        code(
            "once",
            "self._turn.journal.defer(record)",
            "self._turn.journal.defer(record)\n        return value",
        ),
        rules.test_R13_what_a_turn_reads_is_recorded_at_its_start,
        (),
    ),
    (
        "R14 a spent budget is not recorded",
        code("model", "await journal.barrier(failed)", "pass"),
        rules.test_R14_a_spent_budget_is_a_record,
        (),
    ),
    (
        "R15 a preview's native id is not stored",
        code(
            "_update",
            "self._holder.keep(Changes(views=(self.rows[key],)))",
            "self.rows[key].version and self._holder.keep(Changes(views=(self.rows[key],)))",
        ),
        rules.test_R15_a_preview_is_grown_again_in_the_same_message,
        (),
    ),
    (
        "R16 an effect cut off runs again",
        code("tool", 'repetition == "effect"', "False"),
        rules.test_R16_a_tool_cut_off_runs_again_as_its_class_allows,
        ("note",),
    ),
    (
        "R16 the second run gets another key",
        code("tool", "token = started.token if", "token = started.token + '+' if"),
        rules.test_R16_a_tool_cut_off_runs_again_as_its_class_allows,
        ("add",),
    ),
    (
        "R16 a pure tool costs a commit",
        code("tool", 'repetition != "pure"', "True"),
        rules.test_R16_a_tool_cut_off_runs_again_as_its_class_allows,
        ("look",),
    ),
    (
        "R17 nothing is given up",
        code("_after_crash", "resumed.resumes >= self.services.give_up_after", "False"),
        rules.test_R17_a_turn_that_ends_its_process_each_time_is_given_up,
        (),
    ),
    (
        "R17 resumes are not stored",
        code("_after_crash", "self.state.submit(Changes(turns=(resumed,)))", "pass"),
        rules.test_R17_a_turn_that_ends_its_process_each_time_is_given_up,
        (),
    ),
    (
        "R18 a view looks at the clock",
        code(
            "_outcome",
            "{ambient.utc(answer.at):%Y-%m-%d %H:%M}",
            "{ambient.utc(ambient.now()):%S.%f}",
        ),
        rules.test_R18_views_are_a_pure_fold_over_records,
        (),
    ),
    (
        "R19 a mark found after a crash means nothing",
        code("load", "if row.sending >= 0 else row", "if False else row"),
        rules.test_R19_the_outbox_is_desired_state,
        (),
    ),
    (
        "R19 a changed view is a new message",
        code("want", "keep_marks(row, old)", "replace(keep_marks(row, old), natives=())"),
        rules.test_R19_an_overtaken_edit_is_merged,
        (),
    ),
    (
        "R20 the sender is cancelled",
        both(
            code(
                "run",
                "while not self._stopping:",
                "self._task = asyncio.current_task()\n    while not self._stopping:",
            ),
            code(
                "stop",
                "self._stopping = True",
                "self._stopping = True\n    getattr(self, '_task', None) and self._task.cancel()",
            ),
        ),
        rules.test_R20_the_sender_is_asked_to_stop_never_cancelled,
        (),
    ),
    (
        "R21 a call starts though the lease may end before it",
        code("_call", "if not self._holder.may_send(min(limit, SEND_LIMIT)):", "if False:"),
        rules.test_R21_no_call_outlives_the_lease,
        (),
    ),
    (
        "R21 a holder that cannot renew works on",
        code("_acts_for", "- self._ttl / 3", "+ 1e9"),
        rules.test_R21_no_call_outlives_the_lease,
        (),
    ),
    (
        "R22 the session waits for a tool that eats its cancel",
        code(
            "_run_turn",
            "if not await self.state.wait_change(patience):",
            "await self.state.changed.wait()\n            if False:",
        ),
        rules.test_R22_a_tool_that_eats_its_cancel_is_abandoned,
        (),
    ),
    (
        "R23 a parked turn keeps the lane",
        code(
            "begin",
            "if not state.queue or self.settles_in():",
            "if not state.queue or any(t.status == 'parked' for t in state.turns.values()):",
        ),
        rules.test_R23_a_parked_turn_gives_the_lane_back,
        (),
    ),
    (
        "R23 words do not answer an input",
        code("find_open_input", "state.open_questions()", "()"),
        rules.test_R23_a_parked_turn_gives_the_lane_back,
        (),
    ),
    (
        "R24 a bad request takes its commit along",
        code(
            "_run_alone",
            "    if isinstance(error, sqlite3.IntegrityError | UnicodeEncodeError):",
            "    raise sqlite3.OperationalError('all') from error\n"
            "        if isinstance(error, sqlite3.IntegrityError | UnicodeEncodeError):",
        ),
        rules.test_R24_a_bad_request_does_not_take_its_commit_along,
        (),
    ),
    (
        "R24 records are encoded before the queue",
        code(
            "submit",
            "return self._writer.submit(\n        lambda c: self._apply",
            "[row.body() for row in changes.records]\n"
            "    return self._writer.submit(\n        lambda c: self._apply",
        ),
        rules.test_R24_a_bad_request_does_not_take_its_commit_along,
        (),
    ),
]


def in_child(test: Callable[..., None], arguments: tuple[str, ...], mutant: Mutant | None) -> str:
    """Run a rule's test in a forked child: "" if it passes, else what it died of."""
    folder = Path(tempfile.mkdtemp(prefix="tk-mutant-"))
    try:
        pid = os.fork()
        if pid == 0:
            _child(folder, test, arguments, mutant)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            return f"ended by signal {os.WTERMSIG(status)}"
        told = (folder / "told").read_text()
        assert os.WEXITSTATUS(status) in (0, 1), f"the mutant does not apply: {told}"
        return told
    finally:
        shutil.rmtree(folder)


def _child(
    folder: Path, test: Callable[..., None], arguments: tuple[str, ...], mutant: Mutant | None
) -> None:
    code, told = 2, ""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(LONGEST)
        world = folder / "world"
        world.mkdir()
        if mutant is not None:
            mutant()
        code = 1
        wanted = inspect.signature(test).parameters
        test(*((world,) if "tmp_path" in wanted else ()), *arguments)
        code = 0
    except BaseException:
        told = traceback.format_exc()
    finally:
        (folder / "told").write_text(told)
        os._exit(code)


@functools.cache
def unbroken(test: Callable[..., None], arguments: tuple[str, ...]) -> str:
    return in_child(test, arguments, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "test", "arguments"), [row[1:] for row in MUTANTS], ids=[row[0] for row in MUTANTS]
)
def test_a_broken_rule_is_seen(
    mutant: Mutant, test: Callable[..., None], arguments: tuple[str, ...]
) -> None:
    assert unbroken(test, arguments) == ""
    assert in_child(test, arguments, mutant) != "", "nothing noticed it"


def apply_nothing() -> None:
    """A test that passes whatever is broken."""


def test_some_mutants_apply() -> None:
    """To the code as it is named today; the slow test tries all of them."""
    for _, mutant, _, _ in take(MUTANTS, 6, "mutants"):
        assert in_child(apply_nothing, (), mutant) == ""


def test_every_rule_has_a_mutant() -> None:
    assert {row[0][:3] for row in MUTANTS} == {f"R{n:02}" for n in range(1, 25)}
