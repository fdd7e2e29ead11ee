"""The policy: which calls run, which need a person, which never run. Verdicts are values."""

import re
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from agent_core.messages import Access
from agent_core.phrases import Phrase, phrase
from agent_core.policy_rules import OperatorRule, RuledCall, find_rule, opens_host
from agent_core.questions import (
    HOST,
    HOSTS,
    NETWORK,
    Coverage,
    Offer,
    Risk,
    offer_hosts,
)
from agent_core.sandboxes.secrets import find_named

Ruling = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "auto"]

SECRET_FILE = "secret-file"
"""The policy's line that asks for commands that read secret files."""
VIEWER = "viewer"
"""The role that only reads."""
ANY_LOW = "risk:low"
"""The pattern of a grant for all low-risk calls of a tool."""
MAX_RULE = 300
"""Characters of a rule that a person can still check."""
MAX_DIGEST = 32
"""Characters of a digest in a rule. Whoever writes two scripts must find no two whose digests begin
alike."""

Bound = Literal["words", "named", "sources"]


_PLAIN_WORDS = re.compile(r"[\w ./:=,+@%-]+")
_FINDERS = frozenset({"xargs", "parallel", "find", "fd"})
"""Programs that run others on files they find."""


class Bond(Struct, frozen=True, kw_only=True):
    """The parts of a call to which an approval is bound, besides tool, arguments and folder.
    `words`: nothing more; `named`: the files that the tool names, e.g. those of a command;
    `sources`: also the workspace's source files; `everything`: pictures and documents too, since
    its words do not say which files it reaches. `lends`: names of the secrets that it is given."""

    kind: Bound = "named"
    everything: bool = False
    lends: tuple[str, ...] = ()


class CallFacts(Struct, frozen=True, kw_only=True):
    """The facts about a call that the policy uses, read by `agent_core.tools.facts`. `refusal`: why
    its paths are forbidden. `unsure`: why its command is not understood. `seconds`: the time that
    it asks for, 0 for none; `max_seconds`: what it may take. `rule`: the tool's extent of 'always';
    None: this very call, which is `words`."""

    tool: str
    access: Access
    reads_only: bool = False
    isolated: bool = True
    refusal: Phrase | None = None
    command: str = ""
    script: str = ""
    """Code in a shell's language."""
    code: str = ""
    """Code in another one."""
    unsure: Phrase | None = None
    runs_no_file: bool = False
    """It is not understood only because of what it writes, and runs no file of the workspace."""
    is_program: bool = False
    dangerous: bool = False
    background: bool = False
    seconds: int = 0
    max_seconds: float = 0.0
    rule: str | Phrase | None = None
    words: str = ""
    hosts: tuple[str, ...] = ()
    """The hosts that it names, where the network is closed."""
    names_secret: bool = False
    """Its command or code names a file with secrets, which it may read then."""
    sets_up: bool = False
    """It writes files that programs obey unasked: settings of a repository, a shell, an editor."""
    runs_git: bool = False
    place: str = ""
    """`host:port` of the URL that it reads."""
    closed: Phrase | None = None
    """Why that URL is refused, unless an operator opened its place."""
    paths: tuple[str, ...] = ()
    """The workspace's paths that it names as such."""
    sources: tuple[str, ...] = ()
    """The files that it may run, where they are few and its words do not say."""
    countable: bool = True
    """False: those files are too many to bind a rule to them."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The policy's verdict on one call, with its reason. `rule` names the line of the policy.
    `digest` binds an approval to the call as judged. `offers`: lasting grants that a person may
    choose. `why` is `reason` as a value, None for a hook's words; `notes` and `preview` make up
    `detail`."""

    ruling: Ruling
    rule: str
    reason: str
    risk: Risk = "low"
    digest: str = ""
    offers: tuple[Offer, ...] = ()
    detail: str = ""
    why: Phrase | None = None
    notes: tuple[Phrase, ...] = ()
    preview: str | Phrase = ""
    bound: bool = False
    """It holds for the workspace's files as they are: nothing of the same answer may change them
    while the call runs."""

    @property
    def always(self) -> str:
        """The pattern that 'always' would store, "" if it is not offered."""
        return " ".join(one.pattern for one in self.offers if one.choice == "always")


class Grant(Struct, frozen=True, kw_only=True):
    """An 'allow' that `person` gave for calls of `tool`.

    `pattern` is that of an offer, compared as a whole, or `risk:low`: the tool's calls that only
    read, or that change files and can be taken back. The latter holds for a conversation only
    (`lasting` False), never for always.
    """

    tool: str
    pattern: str
    person: str
    lasting: bool = False


class Situation(Struct, frozen=True, kw_only=True):
    """The circumstances of a turn. `person` (an id): whose message started it. `ask_all`: every
    call is asked about, whatever is granted."""

    mode: Mode
    person: str
    ask_all: bool = False
    rules: tuple[Grant, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of secrets that a command is given if it names them."""
    hosts: frozenset[str] = frozenset()
    """Hosts that the operator opened to every command."""
    contained: bool = False
    """The self-test showed that the sandbox contains what runs in it."""
    unsaved: str = ""
    """Why the turn's changes could not be undone, "" if they can be."""
    exposed: bool = False
    """There are files with secrets, and the sandbox cannot hide them."""
    committed: bool = False
    """A repository has secret files in its history, where nothing hides them."""
    role: str = ""
    """The person's role, in the gateway's words; "" without roles."""
    places: frozenset[str] = frozenset()
    """Internal places (`host:port`) that the operator opened to tools that read URLs."""
    operator: tuple[OperatorRule, ...] = ()
    """The operator's own rules; `conversation` and `now`, seconds since 1970, are for them."""
    conversation: str = ""
    now: float = 0.0

    @property
    def open_hosts(self) -> frozenset[str]:
        """Hosts that a command may reach unasked."""
        given = (one for one in self.rules if one.tool == NETWORK and one.person == self.person)
        return self.hosts.union(one.pattern.removeprefix(HOST) for one in given)


class _Line(Struct, frozen=True, kw_only=True):
    """The table's line for a call. `grants`: a stored 'allow' may answer instead of a person;
    `broad`: also one for all such calls of the tool in a conversation."""

    ruling: Ruling
    rule: str
    why: Phrase
    risk: Risk = "low"
    notes: tuple[Phrase, ...] = ()
    grants: bool = True
    broad: bool = False


def decide(call: CallFacts, digest: str, situation: Situation) -> Verdict:
    """Return the verdict on a call. Pure; `digest` is what an approval is bound to."""
    line = (
        _check_forbidden(call)
        or _check_address(call, situation)
        or _check_role(call, situation)
        or _too_long(call)
        or _check_lent_secret(call, situation.secrets)
        or _table(call, situation)
    )
    line = _apply_operator(line, call, situation)
    if situation.ask_all and line.ruling == "allow" and call.access != "person":
        line = _Line(ruling="ask", rule="ask-all", why=phrase("why_ask_all"), risk=line.risk)
    if line.ruling != "deny" and (closed := _list_closed(call, situation)):
        bound = find_bond(call, situation).kind == "sources"
        asked = _ask_for_hosts(line, closed, digest, bound=bound)
        return replace(asked, offers=()) if situation.ask_all else asked
    bond = find_bond(call, situation)
    offers = () if situation.ask_all else _list_offers(call, line, digest, bond)
    for grant in situation.rules:
        if grant.person == situation.person and _is_offered(grant, offers):
            why = phrase("granted_before", rule=grant.pattern)
            line = _Line(ruling="allow", rule="granted", why=why, risk=line.risk)
            break
    return Verdict(
        ruling=line.ruling,
        rule=line.rule,
        reason=str(line.why),
        risk=line.risk,
        digest=digest,
        offers=offers if line.ruling == "ask" else (),
        detail=" ".join(map(str, line.notes)),
        why=line.why,
        notes=line.notes,
        bound=bond.kind == "sources",
    )


def find_bond(call: CallFacts, situation: Situation) -> Bond:
    """Return what an approval of the call is bound to. A command that can reach nothing but the
    workspace is bound to its words: its effects there can be undone."""
    if call.access != "shell":
        return Bond()
    lends = find_named(call.command, situation.secrets)
    secrets = bool(lends) or call.names_secret or situation.exposed
    secrets = secrets or (situation.committed and call.runs_git)
    network = bool(call.hosts or situation.open_hosts)
    if call.isolated and situation.contained and not (secrets or network):
        return Bond(kind="words")
    unsure = call.unsure is not None and not call.runs_no_file
    runs_files = unsure or call.runs_git  # its config and hooks are files too
    if not runs_files:
        return Bond(kind="named", lends=lends)
    return Bond(kind="sources", everything=not _says_its_files(call.command), lends=lends)


def _says_its_files(command: str) -> bool:
    """Return True if the command has nothing, such as wildcards, that stands for files it does not
    name."""
    programs = {word.rpartition("/")[2] for word in command.split()}
    return bool(_PLAIN_WORDS.fullmatch(command)) and not programs & _FINDERS


def _list_closed(call: CallFacts, situation: Situation) -> tuple[str, ...]:
    known = frozenset[str]() if situation.ask_all else situation.open_hosts
    closed = tuple(host for host in call.hosts if host not in known)
    if not closed or situation.ask_all or not situation.operator:
        return closed
    ruled = _make_ruled(call, situation)
    return tuple(host for host in closed if not opens_host(situation.operator, ruled, host))


def _apply_operator(line: _Line, call: CallFacts, situation: Situation) -> _Line:
    """Apply the operator's rules to a verdict. They lift no deny, and lend no secret unasked."""
    if line.ruling == "deny" or not situation.operator or call.access == "person":
        return line
    found = find_rule(situation.operator, _make_ruled(call, situation))
    if found is None or found.effect == line.ruling == "allow":
        return line
    if found.effect == "allow" and line.rule in ("secret", SECRET_FILE):
        return line
    why = phrase("why_operator", rule=found.name, why=found.reason)
    if found.unclear:
        why = phrase("why_operator_unclear", rule=found.name)
    elif not found.reason:
        why = phrase("why_operator_plain", rule=found.name)
    return _Line(
        ruling=found.effect,
        rule=found.rule,
        why=why,
        risk=line.risk,
        notes=line.notes,
        grants=False,
    )


def _make_ruled(call: CallFacts, situation: Situation) -> RuledCall:
    named = (call.place,) if call.place else ()
    return RuledCall(
        tool=call.tool,
        command=call.command or call.script,
        code=call.code,
        paths=call.paths,
        hosts=(*call.hosts, *named),
        role=situation.role,
        conversation=situation.conversation,
        now=situation.now,
    )


def _ask_for_hosts(line: _Line, closed: tuple[str, ...], digest: str, *, bound: bool) -> Verdict:
    """The line 'a host is opened: ask'. A grant opens the hosts, and allows no call by itself."""
    named = ", ".join(closed)
    why, notes = phrase("why_hosts", hosts=named), line.notes
    return Verdict(
        ruling="ask",
        rule=HOSTS,
        reason=str(why),
        risk="high" if line.risk == "high" else "medium",
        digest=digest,
        offers=offer_hosts(closed) if line.risk != "high" else (),
        detail=" ".join(map(str, notes)),
        why=why,
        notes=notes,
        bound=bound,
    )


def _check_forbidden(call: CallFacts) -> _Line | None:
    """The line 'outside the workspace, secrets: deny', by the words of the call's paths."""
    if call.refusal is None:
        return None
    return _Line(ruling="deny", rule="outside", why=call.refusal, risk="high")


def _check_address(call: CallFacts, situation: Situation) -> _Line | None:
    """The line 'a URL that leads inside, or that two readers read differently: deny'."""
    if call.closed is None or call.place in situation.places:
        return None
    return _Line(ruling="deny", rule="address", why=call.closed, risk="high")


def _check_role(call: CallFacts, situation: Situation) -> _Line | None:
    """The line 'a viewer only reads'."""
    if situation.role != VIEWER or call.reads_only or call.access in ("read", "person"):
        return None
    return _Line(ruling="deny", rule="viewer", why=phrase("why_viewer"))


def _check_lent_secret(call: CallFacts, secrets: tuple[str, ...]) -> _Line | None:
    """Apply the line 'a secret is given to a command: ask, each time'."""
    lent = find_named(call.command, secrets) if call.access == "shell" else ()
    if not lent:
        return None
    where = phrase("isolated" if call.isolated else "isolated_not")
    return _Line(
        ruling="ask",
        rule="secret",
        why=phrase("why_lent", names=", ".join(lent)),
        risk="high",
        notes=(where, phrase("without_value")),
        grants=False,
    )


def _table(call: CallFacts, situation: Situation) -> _Line:
    access: Access = "read" if call.reads_only else call.access
    match access:
        case "person":
            return _Line(ruling="allow", rule="person", why=phrase("why_person"))
        case "read":
            return _Line(ruling="allow", rule="read", why=phrase("why_read"))
        case "write":
            if call.sets_up:
                return _Line(
                    ruling="ask",
                    rule="settings-file",
                    why=phrase("why_settings"),
                    risk="high",
                    grants=False,
                )
            ruling: Ruling = "allow" if situation.mode == "auto" else "ask"
            return _Line(ruling=ruling, rule="write", why=phrase("why_write"), broad=True)
        case "shell":
            return _shell(call, situation)
        case "network":
            return _Line(ruling="ask", rule="network", why=phrase("why_network"), risk="medium")
        case _:
            assert_never(access)


def _too_long(call: CallFacts) -> _Line | None:
    """Apply the line 'longer than a command may take: deny'; a default time is cut instead."""
    if call.access != "shell" or call.seconds <= call.max_seconds:
        return None
    most, asked = f"{call.max_seconds:g}", str(call.seconds)
    return _Line(ruling="deny", rule="too-long", why=phrase("why_too_long", most=most, asked=asked))


def _shell(call: CallFacts, situation: Situation) -> _Line:
    behind = (phrase("runs_on"),) if call.background else ()
    if not call.isolated:
        return _Line(
            ruling="ask",
            rule="shell-unisolated",
            why=phrase("why_unisolated"),
            risk="high" if call.unsure is not None else "medium",
            notes=behind,
            grants=False,
        )
    if call.names_secret:
        why = phrase("why_reads_secret")
        notes = (phrase("isolated"), *behind)
        return _Line(
            ruling="ask", rule=SECRET_FILE, why=why, risk="high", notes=notes, grants=False
        )
    if situation.exposed or (situation.committed and call.runs_git):
        why = phrase("why_exposed" if situation.exposed else "why_committed")
        notes = (phrase("isolated"), *behind)
        return _Line(ruling="ask", rule=SECRET_FILE, why=why, risk="medium", notes=notes)
    if situation.contained and situation.mode == "auto" and not situation.unsaved:
        return _Line(ruling="allow", rule="contained", why=phrase("why_contained"))
    notes = (phrase("isolated"), *behind)
    if situation.contained and situation.mode == "auto":
        why = phrase("why_unsaved", why=situation.unsaved)
        return _Line(ruling="ask", rule="unsaved", why=why, notes=notes, broad=True)
    if call.unsure is not None:
        return _Line(
            ruling="ask",
            rule="shell",
            why=phrase("why_unsure", why=call.unsure),
            risk="high" if call.dangerous else "medium",
            notes=notes,
        )
    ruling: Ruling = "allow" if situation.mode == "auto" else "ask"
    return _Line(ruling=ruling, rule="shell", why=phrase("why_looks"), notes=notes, broad=True)


def _is_offered(grant: Grant, offers: tuple[Offer, ...]) -> bool:
    """Return True if the grant is among the offers for this call. A narrow rule holds for either
    time; one for all calls of a tool for a conversation only."""
    choices = ("always",) if grant.lasting else ("conversation", "always")
    return bool(grant.person) and any(
        grant.tool == one.tool and grant.pattern == one.pattern and one.choice in choices
        for one in offers
    )


def _list_offers(call: CallFacts, line: _Line, digest: str, bond: Bond) -> tuple[Offer, ...]:
    """Return the lasting grants offered for a call about which this line asks: none at high
    risk."""
    if line.ruling != "ask" or not line.grants or line.risk == "high":
        return ()
    narrow, covers = _narrow(call, digest, bond)
    offers = [Offer(choice="always", tool=call.tool, pattern=narrow, covers=covers)]
    here = Offer(choice="conversation", tool=call.tool, pattern=narrow, covers=covers)
    if line.broad and line.risk == "low":
        every = Coverage(risk=line.risk)
        here = Offer(choice="conversation", tool=call.tool, pattern=ANY_LOW, covers=every)
    return tuple(one for one in (here, *offers) if one.pattern)


def _narrow(call: CallFacts, digest: str, bond: Bond) -> tuple[str, Coverage | None]:
    """Return the extent of a narrow grant, in words and as a value: this very call, or the tool's
    rule.

    "" if they are too long to be checked, or the call may run more files than can be. A command
    that may run a file of the workspace is bound to the files' content as well: with the same
    words, a swapped script would be another call.
    """
    if call.rule is not None:
        rule = str(call.rule)
        covers = Coverage(phrase=call.rule) if isinstance(call.rule, Phrase) else None
        return (rule, covers) if len(rule) <= MAX_RULE else ("", None)
    if len(call.words) > MAX_RULE:
        return "", None
    bound = bond.kind == "sources"
    if bound and not call.countable:
        return "", None
    behind = " · in the background" if call.background else ""
    as_of = f" · as of {digest[:MAX_DIGEST]}" if bound else ""
    covers = Coverage(
        words=call.words,
        background=call.background,
        bound=bound,
        files=call.sources if bound else (),
    )
    return f"= {call.words}{behind}{as_of}", covers
