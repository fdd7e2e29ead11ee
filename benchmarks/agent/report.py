"""The suite run once, as rows and as a table."""

from dataclasses import dataclass

from agent_core.models.port import Model
from benchmarks.agent.cases import CASES, Case
from benchmarks.agent.course import Run, measured

HEAD = (
    "| mechanism | the model | fired | right | model calls | tokens | tool calls |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A case `on`, with its mechanism, and `off`, without; None: not tried."""

    case: Case
    on: Run
    off: Run | None

    @property
    def fired(self) -> bool:
        return self.case.fired(self.on)

    @property
    def alone(self) -> bool:
        """Nothing of the kind happened without the mechanism."""
        return self.off is None or not self.case.fired(self.off)

    @property
    def gains(self) -> bool:
        """It is better with the mechanism in what the case is about, and right in any event."""
        if self.off is None or not self.on.right:
            return self.on.right
        if self.case.gain == "right":
            return not self.off.right
        return self.on.numbers()[self.case.gain] < self.off.numbers()[self.case.gain]

    def line(self) -> str:
        """As a row of the table, without → with."""
        off, on = self.off, self.on
        fired = [self.case.fired(off)] if off else []
        right = [off.right] if off else []
        cells = [
            self.case.name,
            self.case.model,
            _words([*fired, self.fired]),
            _words([*right, on.right]),
        ]
        for name, number in on.numbers().items():
            cells.append(f"{off.numbers()[name]} → {number}" if off else str(number))
        return f"| {' | '.join(cells)} |"

    def plain(self) -> dict[str, object]:
        """As JSON has it."""
        one: dict[str, object] = {"mechanism": self.case.name, "model": self.case.model}
        one["with"] = {**self.on.numbers(), "fired": self.fired, "right": self.on.right}
        if self.off is not None:
            off = {"fired": self.case.fired(self.off), "right": self.off.right}
            one["without"] = {**self.off.numbers(), **off}
        return one


async def rows(real: Model | None = None, name: str = "") -> list[Row]:
    """All cases; with a `real` model only as they are, not without their mechanisms."""
    made = []
    for case in CASES:
        off = await measured(case.work, False) if real is None else None
        made.append(Row(case=case, on=await measured(case.work, True, real, name), off=off))
    return made


def _words(values: list[bool]) -> str:
    return " → ".join("yes" if value else "no" for value in values)
