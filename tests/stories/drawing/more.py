"""Stories that are only drawn: what is easily shown badly, told for people's eyes alone."""

from tests.fakes.model_server import Call, Calls, Empty, Fail, Say
from tests.stories.surfaces.chat_stories import ask, run
from tests.stories.surfaces.story import Story
from tests.stories.surfaces.surface import Surface

ROWS = "\n".join(
    f"| [host {n}](https://host{n}.example/a) | {n * 3} € | **{n}** GB |" for n in range(4)
)
RICH = f"""# Hosts in short

Three are **cheap**, one is *slow*, `nano-2` is ~~gone~~ and <b>none</b> is free & open.

## What they cost

| Host | Price | Memory |
|:-----|------:|:------:|
{ROWS}

1. Take the first:
   - it has `ssh`
   - it is in **Oslo**
     - on a hill
2. Or the second one.

- [x] compared
- [ ] ordered

> Nobody was ever fired
> for a *small* machine.

```python
def price(host: str, months: int = 12) -> float:
    return sum(rate(host, month) for month in range(months))  # a comment that makes this line rather long
```

Reallyverylongwordwithoutanyplacetobreak{"abcdefghij" * 8} and https://example.org/{"path/" * 20}end

---

See [the docs](https://docs.example/start) or write to a_b_c@example.org. 2 * 3 * 4 = 24, snake_case_name.
"""


async def _rich(s: Surface) -> None:
    s.answers(hosts=[Say(RICH, words=20)])
    await s.say("Which hosts?")
    await s.shows("snake_case_name")


async def _files(s: Surface) -> None:
    s.answers(
        table=[
            Calls([Call("write_file", '{"path": "table.csv", "content": "a,b\\n1,2\\n"}')]),
            Call(
                "send_file", '{"paths": ["table.csv"], "caption": "The **table**, as you asked."}'
            ),
            Say("It is in the file."),
        ]
    )
    await s.say("Make a table")
    await s.shows("It is in the file.")


async def _german(s: Surface) -> None:
    reads = Call("run_command", '{"command": "sh effects.txt"}', id="call_reads")
    both = Calls([run("eins"), reads])
    s.answers(
        Beides=[both, Say("Beide liefen.")],
        Buche=[ask("Wohin?", "Berlin", "Wien"), ask("An welchem Tag?"), Say("Gebucht.")],
        Datei=[
            Call("write_file", '{"path": "a.txt", "content": "eins\\nzwei\\n", "note": 3}'),
            Call("list_files", '{"path": "."}'),
            Call("read_file", '{"path": "b.txt"}'),
            Say("Fertig."),
        ],
    )
    await s.say("Beides bitte")
    await s.card("effects.txt")
    await s.rest("zwei gefragt")
    await s.press("Einmal erlauben")
    await s.card("Was dabei laufen kann")
    await s.press("Einmal erlauben")
    await s.shows("Beide liefen.")
    await s.say("Buche etwas")
    await s.card("Wohin?")
    await s.press("Wien")
    await s.card("An welchem Tag?")
    await s.rest("Formular")
    await s.fill_in("am Montag")
    await s.shows("Gebucht.")
    await s.command("/mode ask")
    await s.say("Datei bitte")
    await s.card("a.txt")
    await s.rest("Datei gefragt")
    await s.press("Einmal erlauben")
    await s.shows("Fertig.")


async def _commands(s: Surface) -> None:
    for name in ("help", "status", "usage", "mode", "permissions", "approvals", "jobs", "whoami"):
        await s.command(f"/{name}")
    await s.say("The end")
    await s.shows("ack The end")


async def _fails(s: Surface) -> None:
    s.answers(break_=[Fail(401, message="bad key")], hang=[Fail(500)] * 9, empty=[Empty(), Empty()])
    await s.say("Please break_ it")
    await s.rig.quiet()
    await s.say("Please hang")
    await s.rig.quiet()
    await s.say("The end")
    await s.shows("ack The end")


MORE = {
    "rich": Story(tell=_rich, rests=()),
    "files": Story(tell=_files, rests=()),
    "german_cards": Story(tell=_german, rests=(), language="de"),
    "fails": Story(tell=_fails, rests=(), language="de"),
    "commands": Story(tell=_commands, rests=()),
    "commands_german": Story(tell=_commands, rests=(), language="de"),
}
