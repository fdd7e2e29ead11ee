"""What atheris feeds: `python -m tests.attacks.fuzz_targets NAME [options of libFuzzer]`. A crash, or
a text that takes too long, ends it with an error."""

import importlib
import sys
from collections.abc import Callable, Iterable

from tests.attacks.case_lists import read_cases

Target = Callable[[str], object]


def _fuzz_policy() -> Target:
    from agent_core.settings import ModelSettings
    from gateway.wiring.policy_check import PolicyChecker

    checker = PolicyChecker(ModelSettings.read({}))

    def judge(text: str) -> None:
        line = text.encode("utf-8", "surrogatepass")
        for one in (checker.judge_call, checker.judge_path, checker.judge_url):
            assert one(line).decision in ("allow", "ask", "deny")

    return judge


def _fuzz_shell() -> Target:
    from agent_core.tools.shell_reading.mentions import names_secret
    from agent_core.tools.shell_reading.possible_words import read_possible
    from agent_core.tools.shell_words import runs_no_file, split_plainly, understand

    def read(text: str) -> None:
        for one in (understand, names_secret, runs_no_file, split_plainly, read_possible):
            one(text)

    return read


def _fuzz_cards() -> Target:
    from tests.attacks.text_grammar import DRAWN, make_views

    def draw(text: str) -> None:
        for view in make_views(text):
            for one in DRAWN.values():
                one(view)

    return draw


TARGETS: dict[str, Callable[[], Target]] = {
    "policy": _fuzz_policy,
    "shell": _fuzz_shell,
    "cards": _fuzz_cards,
}
SEEDS = {"policy": "paths_closed", "shell": "shell_hostile", "cards": "urls_closed"}


def list_seeds(name: str) -> Iterable[bytes]:
    """Texts to begin with."""
    return (one.encode("utf-8", "surrogatepass") for one in read_cases(SEEDS[name]))


def main(name: str, options: list[str]) -> None:
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["agent_core.tools", "adapters", "gateway.texts"]):
        target = TARGETS[name]()
    atheris.Setup([name, *options], lambda data: target(data.decode("utf-8", "replace")))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
