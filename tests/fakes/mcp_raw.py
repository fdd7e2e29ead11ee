"""An MCP server that answers calls with lines of a file, as they stand there, whatever they are.

    python mcp_raw.py FILE [TOOLS]

It offers the tools of TOOLS, a list in JSON, as they stand there now; a call of one of them is a
line in `TOOLS.called`, and answered with it. Where TOOLS is an object instead, it has what is
answered by method, a result or `{"error": …}`, or a list of results, the pages of a list. Each line of FILE is JSON: the texts to write for call
number N, `@ID` in them the call's id. Bytes beyond ASCII are written as Latin-1 has them, which is
no UTF-8. `@ENDLESS` is one line that never ends.
"""

import json
import sys
from pathlib import Path
from typing import Any

SHAPE = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS = [{"name": "say", "description": "Says something.", "inputSchema": SHAPE}]
BEGIN = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def call_listed(place: Path, asked: dict[str, Any]) -> dict[str, object]:
    """The result of a tool of a list, which only notes that it was called."""
    line = json.dumps(asked["params"])
    with place.with_name(f"{place.name}.called").open("a") as file:
        file.write(f"{line}\n")
    return {"content": [{"type": "text", "text": line}]}


def begin(answers: dict[str, Any]) -> dict[str, object]:
    """Its first answer, with a capability for each list that it has an answer for."""
    return BEGIN | {"capabilities": {"tools": {}} | {one.partition("/")[0]: {} for one in answers}}


def turn_page(pages: list[Any], asked: dict[str, Any]) -> dict[str, object]:
    """The page that is asked for, with where the next one is."""
    n = int((asked.get("params") or {}).get("cursor") or 0)
    more = {"nextCursor": str(n + 1)} if n + 1 < len(pages) else {}
    return {**pages[n], **more}


def main() -> None:
    texts = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    listed = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    tools = TOOLS if listed is None else json.loads(listed.read_text())
    answers = tools if isinstance(tools, dict) else {}
    for raw in sys.stdin.buffer:
        asked = json.loads(raw)
        if "id" not in asked or "method" not in asked:
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": asked["id"]}
        match asked["method"]:
            case "initialize":
                write(json.dumps(answer | {"result": begin(answers)}).encode())
            case method if said := answers.get(method):
                said = turn_page(said, asked) if isinstance(said, list) else said
                write(json.dumps(answer | (said if "error" in said else {"result": said})).encode())
            case "tools/list":
                tools = TOOLS if listed is None else json.loads(listed.read_text())
                write(json.dumps(answer | {"result": {"tools": tools}}).encode())
            case "tools/call" if listed is not None:
                write(json.dumps(answer | {"result": call_listed(listed, asked)}).encode())
            case "tools/call":
                for text in texts[asked["params"]["arguments"]["n"]]:
                    while text == "@ENDLESS":
                        sys.stdout.buffer.write(b"x" * (1 << 20))
                    write(text.replace("@ID", str(asked["id"])).encode("latin-1"))
            case _:
                unknown = {"code": -32601, "message": "unknown"}
                write(json.dumps(answer | {"error": unknown}).encode())


if __name__ == "__main__":
    main()
