"""Options of everyday programs with which they only look are no alarm, alone and beside others; and
none of them lets an option by with which the same program does more."""

import json

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.settings import ModelSettings
from gateway.wiring.policy_check import PolicyChecker
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))
SUMS = (
    "-b|-t|--binary|--text|--tag|--zero",
    "-f.env|--files=x|--no-such|-o x|--output=x",
)
LOOKING: dict[str, tuple[str, str]] = {
    "sort a.txt": (
        "-b|-d|-f|-g|-i|-M|-h|-n|-R|-r|-V|-s|-u|-z|-c|-k 2,3|-k2|-t ,|-t:|-S 50%|-S1M|--buffer-size=1M|--parallel=2|"
        "--key=2|--field-separator=,|--batch-size=4|--sort=numeric|--debug|--check=quiet|--stable|--unique",
        "-o x|-ox|--output=x|--outp x|--compress-program=sh|--files0-from=.env|-T /etc|--temporary-directory=/etc|--random-source=.env",
    ),
    "diff a.txt b.txt": (
        "-u|-c|-y|-q|-s|-i|-w|-b|-B|-E|-Z|-a|-e|-n|-p|-t|-T|-d|-U3|-U 3|-C 2|-W 90|-I x|--ignore-matching-lines=x|"
        "--changed-group-format=%>|--unchanged-group-format=|--old-line-format=%L|--new-line-format=%L|--line-format=%l|"
        "--color=never|--label=x|--horizon-lines=3|--tabsize=4|--minimal|--suppress-blank-empty|-F x|--show-function-line=x",
        "--to-file=/etc/passwd|--from-file=.env|-X .env|--exclude-from=.env|-l|--paginate|--no-such",
    ),
    "find .": (
        "-name x|-iname x|-xtype l|-nouser|-nogroup|-uid 0|-gid 0|-noleaf|-daystart|-newermt 2024-01-01|-used 3|"
        "-cmin -5|-size +1k|-type f|-executable|-links 2|-print0|-ls|-ignore_readdir_race|-warn|-nowarn|-fstype ext4|-lname x|-ilname x",
        "-delete|-exec rm {} ;|-execdir ls {} ;|-ok ls {} ;|-fprint x|-fprint0 x|-fprintf x y|-fls x|-files0-from x|-newer /etc/passwd|-L",
    ),
    "sha256sum a.txt": SUMS,
    "sha224sum a.txt": SUMS,
    "sha384sum a.txt": SUMS,
    "md5sum a.txt": SUMS,
    "b2sum a.txt": SUMS,
    "sha1sum sums.txt -c": (
        "--check|--quiet|--status|--strict|--warn|--ignore-missing|-w",
        "--files=x|--no-such|-o x",
    ),
    "seq 3": ("-w|-s ,|-f %03g|--equal-width|--separator=,", "--no-such|-o x"),
    "grep foo a.txt": (
        "-i|-n|-c|-v|-w|-x|-o|-q|-s|-h|-H|-l|-L|-b|-a|-T|-U|-m1|-A 2|-B2|-C 3|--color=always|--colour=never|--count|--ignore-case|"
        "--no-filename|--with-filename|--binary-files=text|--devices=skip|--unix-byte-offsets|--files-with-matches|--line-number",
        "--file=.env|-f .env|-f.env|--exclude-from=.env|--no-such|--regexp",
    ),
    "ls": (
        "-a|-A|-l|-h|-t|-r|-R|-S|-X|-1|-d|-F|-i|-s|-n|-o|-g|-G|-k|-m|-p|-q|-Q|-u|-U|-v|-x|-Z|-w 80|-I x|-T 4|--time=birth|--sort=size|"
        "--color=auto|--full-time|--group-directories-first|--hide=x|--ignore=x|--indicator-style=none|--quoting-style=c|--zero|--dired",
        "--no-such|-z|/etc|~|../x",
    ),
    "wc a.txt": ("-l|-w|-c|-m|-L|--lines|--words|--bytes|--chars|--max-line-length|--total=never", "--files0-from=.env|--files0-from x|--no-such"),
    "head a.txt": ("-n 3|-3|-c 9|-q|-v|-z|--lines=3|--lines 3|--bytes=9|--bytes 9|--quiet|--verbose|--zero-terminated", "--no-such|.env"),
    "tail a.txt": ("-n 3|-n +3|-3|-c 9|-q|-v|-z|--lines=3|--lines 3|--bytes 9|--lines=+2|--quiet", "--no-such|.env|/etc/passwd"),
    "uniq a.txt": ("-c|-d|-D|-u|-i|-f 1|-s 2|-w 3|-z|--count|--repeated|--unique|--skip-fields=1|--group=prepend", "b.txt|--no-such"),
    "cut -f1 a.txt": ("-s|-z|-d,|-d ,|--delimiter=,|--complement|--output-delimiter=:|--only-delimited", "--no-such|.env"),
    "du": ("-a|-b|-c|-h|-k|-m|-s|-x|-d 1|-d1|-L|-P|-S|-t 1M|--max-depth=1|--apparent-size|--exclude=x|--time|--si|--inodes", "--files0-from=.env|-X .env|--exclude-from=.env|/etc"),
    "stat a.txt": ("-c %s|-L|-f|-t|--format=%n|--printf=%n|--terse|--dereference|--cached=never", "--no-such|/etc/shadow"),
    "date": ("-u|-R|-I|-Iseconds|-d now|--date=now|--utc|--universal|--iso-8601=date|--rfc-3339=date|--rfc-email|+%F", "-s now|-snow|--set=now|-f .env|--file=.env"),
    "base64 a.txt": ("-d|-i|-w 0|-w0|--decode|--wrap=0|--ignore-garbage", "--no-such|-o x"),
    "tree": ("-a|-d|-f|-L 2|-I x|-P x|-s|-h|-D|-p|-u|-g|-F|-C|-n|-J|-i|-q|-N|-Q|-t|-r|-U|-v|-X|--du|--prune|--noreport|--dirsfirst|--filelimit=9|--si|--inodes", "-o x|-ox|--fromfile|--fromfile=.env|--infofile=.env|-R"),
}  # fmt: skip


def judge(command: str) -> str:
    call = {"tool": "run_command", "args": {"command": command}, "mode": "auto", "tier": "none"}
    return CHECKER.judge_call(json.dumps(call).encode()).decision


def spell(command: str, options: list[str]) -> str:
    program, _, rest = command.partition(" ")
    if program == "find":
        return f"{command} {' '.join(options).replace(';', chr(92) + ';')}"
    return " ".join([program, *(f"'{one}'" if "%" in one and " " not in one else one for one in options), rest])  # fmt: skip


@pytest.mark.parametrize("command", LOOKING)
def test_an_option_that_only_looks_is_no_alarm(command: str) -> None:
    options = [one for one in LOOKING[command][0].split("|") if one]
    lines = [command, *(spell(command, [one]) for one in options)]
    assert [line for line in lines if judge(line) != "allow"] == []


@pytest.mark.parametrize("command", LOOKING)
def test_an_option_that_does_more_is_asked_about(command: str) -> None:
    lines = [spell(command, [one]) for one in LOOKING[command][1].split("|")]
    assert [line for line in lines if judge(line) == "allow"] == []


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_nor_are_several_and_none_hides_one_that_does_more(data: st.DataObject) -> None:
    command = data.draw(st.sampled_from(sorted(LOOKING)))
    good, bad = (side.split("|") for side in LOOKING[command])
    known = st.lists(st.sampled_from([one for one in good if one] or [""]), max_size=3)
    before, after = data.draw(known), data.draw(known)
    if command != "date" or len([one for one in (*before, *after) if one[:1] == "+"]) < 2:
        assert judge(spell(command, [*before, *after])) == "allow"
    assert judge(spell(command, [*before, data.draw(st.sampled_from(bad)), *after])) != "allow"
