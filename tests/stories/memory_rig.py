"""Facts, and calls that remember them."""

import json

from tests.fakes.model_server import Call

TEA, COFFEE, FALCON = "Ann likes tea.", "Ann likes coffee.", "The project is called Falcon."


def memory(action: str, text: str = "", target: str = "memory", old: str = "") -> Call:
    wanted = {"action": action, "target": target, "text": text, "old_text": old}
    return Call("memory", json.dumps({key: value for key, value in wanted.items() if value}))
