"""Runs mini-swe-agent's own loop, in a Python that has it: tasks as JSON lines come in, answers go out.

    python mini_child.py ADDRESS

Stands alone: nothing of this project is imported.
"""

import importlib
import json
import os
import sys
from typing import Any

os.environ |= {
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def main(address: str) -> None:
    """Serve until the input ends."""
    agents: Any = importlib.import_module("minisweagent.agents.default")
    models: Any = importlib.import_module("minisweagent.models.litellm_model")
    local: Any = importlib.import_module("minisweagent.environments.local")
    for line in sys.stdin:
        task = json.loads(line)
        kwargs = {"api_base": f"{address}/v1", "api_key": "key-of-the-bench", "num_retries": 0}
        model = models.LitellmModel(model_name="openai/fake-model", model_kwargs=kwargs)
        agent = agents.DefaultAgent(
            model,
            local.LocalEnvironment(cwd=task["folder"]),
            system_template="You are an agent. Use your tools; answer briefly.",
            instance_template="{{task}}\nEnd with `" + SUBMIT + "` and your answer.",
            step_limit=90,
        )
        try:
            text = str(agent.run(task["text"]).get("submission", ""))
        except Exception as error:  # noqa: BLE001  # its loop raises what its client does
            text = f"({type(error).__name__})"
        print(json.dumps({"text": text}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
