"""Plans as values."""

from agent_core.orchestration.plan import (
    Plan,
    Step,
)


def plan(*steps: str) -> Plan:
    """'id need need' for each step."""
    made = (step.split() for step in steps)
    return Plan(
        title="t", steps=tuple(Step(id=i, description=f"do {i}", needs=tuple(n)) for i, *n in made)
    )


def ids(steps: tuple[Step, ...]) -> str:
    return " ".join(step.id for step in steps)


def states(one: Plan) -> dict[str, str]:
    return {step.id: step.state for step in one.steps}
