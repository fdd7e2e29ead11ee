"""What stories of research share: a web, facts, and a model that reads them."""

import json
import re

from agent_core.context.surroundings import strip_surroundings
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.model_steps import Step
from tests.fakes.web_pages import WebPages

FRAME = {
    "title": "Cheap hosts", "kind": "market", "depth": "quick", "queries": ["cheap hosts", "prices"],
}  # fmt: skip


FACT = re.compile(r"Host \w+ costs \d+ euros a month, as its own price list says\.")


def fact(name: str, n: int) -> str:
    return f"Host {name} costs {n + 5} euros a month, as its own price list says."


def thinks(shown: str, before: str) -> str:
    """What a good model answers in a research. `before`: what it was shown before the last."""
    if "[Research]" in shown:
        return json.dumps(FRAME)
    if "[Synthesis]" in shown:
        return '{"themes": []}'
    if "[Report]" in shown:
        marks = re.findall(r"^(f\d+) ", before, re.MULTILINE)
        return "## Summary\n" + " ".join(f"One host [{mark}]." for mark in marks) + "\n\n## More\nx"
    found = FACT.search(shown)
    assert found, shown
    return json.dumps({"findings": [{"claim": found[0], "quote": found[0]}]})


def answer(body: Json) -> Step:
    messages = [strip_surroundings(str(message["content"])) for message in body["messages"]]
    if body["messages"][-1]["role"] == "tool":
        return Say("The report says it all.")
    if messages[-1] == "look it up":
        arguments = {"question": "Which hosts are cheap?", "depth": "quick"}
        return Call("delegate_to_research", json.dumps(arguments))
    earlier = [message for message in messages[:-1] if "[Synthesis]" in message]
    return Say(thinks(messages[-1], earlier[-1] if earlier else ""), words=50)


def web_of(site: WebPages) -> dict[str, str]:
    return {
        "SEARXNG_URL": site.url,
        "WEB_ALLOWED_HOSTS": site.place,
        "FLASH_MODEL": "openai/fake-model",
    }
