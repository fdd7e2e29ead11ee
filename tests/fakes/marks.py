"""No platform is sent a command's marks: they are the gateway's own, and people would see them."""

import json

from gateway.command_texts import OPENS


def find_marks(sent: object) -> list[str]:
    """What is wrong with a call's arguments, if a command in them was not written."""
    written = json.dumps(sent, ensure_ascii=False, default=str)
    found = f"{OPENS}/" in written or json.dumps(OPENS)[1:-1] + "/" in written
    return [f"a command was not written: {written[:300]}"] if found else []
