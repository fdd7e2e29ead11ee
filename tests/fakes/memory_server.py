"""A memory as an MCP server of the real SDK, on standard input: entries by user, in a file.

    python memory_server.py FILE

While `FILE.broken` is there, its tools fail; while `FILE.slow` is there, they hang.
"""

import json
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

FILE = Path(sys.argv[1] if len(sys.argv) > 1 else "unused")
server = MCPServer("memory")


def load() -> dict[str, list[str]]:
    if Path(f"{FILE}.broken").exists():
        raise ValueError("out of order")
    if Path(f"{FILE}.slow").exists():
        time.sleep(60)
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def save(known: dict[str, list[str]]) -> None:
    """At once, for whoever reads it meanwhile."""
    part = FILE.with_suffix(".part")
    part.write_text(json.dumps(known))
    part.replace(FILE)


@server.tool()
def search(query: str, user: str) -> str:
    words = set(query.lower().split())
    return "\n".join(e for e in load().get(user, []) if words & set(e.lower().split()))


@server.tool()
def add(text: str, user: str) -> str:
    known = load()
    known.setdefault(user, []).append(text)
    save(known)
    return "kept"


@server.tool()
def remove(text: str, user: str) -> str:
    known = load()
    known[user] = [one for one in known.get(user, []) if one != text]
    save(known)
    return "gone"


@server.tool()
def wipe(user: str) -> str:
    known = load()
    known.pop(user, None)
    save(known)
    return "gone"


if __name__ == "__main__":
    server.run("stdio")
