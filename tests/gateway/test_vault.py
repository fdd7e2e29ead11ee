"""Secrets that are lent to commands: kept, given by name, hidden from everybody."""

import base64
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.messages import digest
from gateway.services.vault import FILE, MIN_VALUE, UnfitSecret, Vault
from tests.fakes.model_server import Call, Say
from tests.stories.rig import FRIEND, PERSON, Rig

VALUE = "hunter2-not-in-a-chat"
WHERE = Rig.where().id


def test_it_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    vault, other = Vault(tmp_path), Vault(tmp_path)
    vault.keep("a", "TOKEN", VALUE)
    vault.keep("b", "OTHER", f"{VALUE}2")
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert other.names("a") == ("TOKEN",) and other.addresses() == ("a", "b")
    place = tmp_path / digest(b"a")
    assert other.lend(place, "curl -H $TOKEN $OTHER") == {"TOKEN": VALUE}
    assert other.lend(place, "echo $TOKENS") == {} and other.lend(place, "env") == {}
    assert other.lend(tmp_path / "elsewhere", "$TOKEN") == {}
    coded = base64.b64encode(VALUE.encode()).decode()
    assert other.hide(f"x{VALUE}y {coded} {VALUE}2") == "x[TOKEN]y [TOKEN] [OTHER]"
    assert vault.drop("a", "TOKEN") and not vault.drop("a", "TOKEN")
    assert other.names("a") == () and other.hide(VALUE) == VALUE


@pytest.mark.parametrize("value", ["ab?cde", "ab>cdef", "äöüß", VALUE])
def test_it_is_hidden_in_base64_whatever_it_stands_between(value: str, tmp_path: Path) -> None:
    """`echo $TOKEN | base64` has a newline behind it, a login a name before it."""
    vault = Vault(tmp_path)
    vault.keep("a", "TOKEN", value.ljust(MIN_VALUE, "x"))
    for before in ("", "m", "me", "me:"):
        for behind in ("", "\n", "\r\n", "; x"):
            raw = f"{before}{value.ljust(MIN_VALUE, 'x')}{behind}".encode()
            for code in (base64.b64encode, base64.urlsafe_b64encode):
                shown = vault.hide(f"it is {code(raw).decode()}.")
                assert shown.startswith("it is ") and "[TOKEN]" in shown
                assert len(shown) <= len("it is [TOKEN].") + 4 + 8, "no more than is beside it"


def shut_by_rights(home: Path) -> Callable[[], object]:
    mode, who = home.stat().st_mode, os.geteuid()
    home.chmod(0)
    if who == 0:  # whom no rights stop
        os.seteuid(65534)

    def undo() -> None:
        os.seteuid(who)
        home.chmod(mode)

    return undo


def shut_by_a_file(home: Path) -> Callable[[], object]:
    kept = home.rename(home.with_name("kept"))
    home.write_text("x")
    return lambda: (home.unlink(), kept.rename(home))


def shut_by_a_loop(home: Path) -> Callable[[], object]:
    kept = home.rename(home.with_name("kept"))
    home.symlink_to(home)
    return lambda: (home.unlink(), kept.rename(home))


@pytest.mark.parametrize("had", range(3))
@pytest.mark.parametrize("shut", [shut_by_rights, shut_by_a_file, shut_by_a_loop])
def test_what_was_lent_stays_hidden_while_the_file_cannot_be_read(
    shut: Callable[[Path], Callable[[], object]],
    had: int,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    vault, late = Vault(home), Vault(home)
    for n in range(had):
        vault.keep("a", f"TOKEN_{n}", f"{VALUE}-{n}-")
    text = " ".join(f"{VALUE}-{n}-" for n in range(had))
    hidden = vault.hide(text)
    undo = shut(home)
    try:
        for _ in range(5):
            assert vault.hide(text) == hidden == " ".join(f"[TOKEN_{n}]" for n in range(had))
        with pytest.raises(OSError):
            vault.lend(home / digest(b"a"), "$TOKEN_0")
        with pytest.raises(OSError):
            late.hide(text)
    finally:
        undo()
    assert caplog.messages.count("secrets_not_read") == 1
    assert vault.hide(text) == late.hide(text) == hidden
    assert vault.names("a") == tuple(f"TOKEN_{n}" for n in range(had))


@pytest.mark.parametrize("name", ["path", "PATH", "LD_PRELOAD", "PYTHONPATH", "A", "A-B", "1A", ""])
def test_names_that_mean_something_else_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnfitSecret):
        Vault(tmp_path).keep("a", name, VALUE)


@pytest.mark.parametrize("value", ["", "short", "two\nlines-of-it", "nul\0nul\0"])
def test_values_that_could_not_be_hidden_are_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(UnfitSecret):
        Vault(tmp_path).keep("a", "TOKEN", value)


def test_the_command_line_is_the_way_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNKEEPER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{VALUE}\n"))
    assert main(["secret", "set", "TOKEN", WHERE]) == 0
    assert main(["secret", "set", "TOKEN", "nowhere"]) == 2
    assert main(["secret", "list"]) == 0
    out = capsys.readouterr()
    assert f"{WHERE}: TOKEN" in out.out and VALUE not in out.out + out.err
    assert main(["secret", "remove", "TOKEN", WHERE]) == 0
    assert main(["secret", "remove", "TOKEN", WHERE]) == 1


@pytest.mark.parametrize("tier", ["unsafe-subprocess", "auto"])
async def test_a_command_that_names_it_is_asked_about_and_nobody_sees_it(
    rig: Rig, tier: str
) -> None:
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(WHERE, "API_TOKEN", VALUE)
    run = 'echo "is $API_TOKEN"; echo $API_TOKEN > kept.txt'
    rig.model.script(
        Call("run_command", f'{{"command": "{run.replace(chr(34), chr(92) + chr(34))}"}}'),
        Call("read_file", '{"path": "kept.txt"}'),
        Say("done"),
        Call("run_command", '{"command": "env"}'),
        Say("nothing there"),
    )
    await rig.start(SANDBOX_PROVIDER=tier)
    rig.telegram.say(PERSON, "/mode auto")
    rig.telegram.say(PERSON, "use it")
    card = await rig.card()
    assert "is given a secret: API_TOKEN" in card["text"] and VALUE not in card["text"]
    assert "Always" not in str(card["reply_markup"]), "it is asked each time"
    rig.press(card, "Approve once")
    await rig.shows("done")
    gave = rig.seen(role="tool")
    assert "is [API_TOKEN]" in gave[0] and "[API_TOKEN]" in gave[1]
    assert (rig.workspace() / "kept.txt").read_text() == f"{VALUE}\n", "the command really had it"
    await rig.quiet()
    rig.telegram.say(PERSON, "what is in env?")
    await rig.until(lambda: rig.cards())
    rig.press(rig.cards()[-1], "Approve once")
    await rig.shows("nothing there")
    assert "API_TOKEN" not in rig.seen(role="tool")[-1], "it is given to who names it"
    everything = str([r.body for r in rig.model.requests]) + str(rig.said())
    assert VALUE not in everything
    assert not any(VALUE in str(vars(record)) for record in rig.log.records)


async def test_a_chat_lists_names_and_takes_no_values(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/secret")
    told = (await rig.shows("No secrets are available here"))["text"]
    assert f"turnkeeper secret set NAME {WHERE}" in told
    rig.telegram.say(PERSON, f"/secret API_TOKEN={VALUE}")
    await rig.shows("Never write a secret in a chat")
    assert Vault(rig.home).addresses() == ()
    Vault(rig.home).keep(WHERE, "API_TOKEN", VALUE)
    rig.telegram.say(PERSON, "/secret")
    await rig.shows("available to commands here: API_TOKEN")
    rig.telegram.say(FRIEND, "/secret")
    await rig.shows("No secrets are available here", FRIEND)
    rig.telegram.say(PERSON, "/secret remove API_TOKEN")
    await rig.shows("API_TOKEN was removed here")
    assert Vault(rig.home).names(WHERE) == ()
