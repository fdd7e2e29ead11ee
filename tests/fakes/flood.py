"""What strangers may throw at a gateway's HTTP door, as a program of its own, so that it takes
no time of the loop that watches the chats.

    python -m tests.fakes.flood tokens|half|bodies HOST PORT COUNT

Prints a line when it is under way, and one of JSON with what it got: statuses, or how connections
ended. `half` holds its connections until its input ends.
"""

import asyncio
import json
import resource
import sys
from collections import Counter

AT_ONCE = 50
HUGE = 64 << 20
PIECE = b"x" * (1 << 16)
GOT: Counter[str] = Counter()


async def ask(host: str, port: int, head: str, body: int = 0) -> None:
    """One request on a connection of its own, which sends as much of a body as it is let."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        GOT["refused"] += 1
        return
    try:
        writer.write(f"{head}\r\nHost: {host}:{port}\r\n\r\n".encode())
        sending = asyncio.create_task(send(writer, body))
        async with asyncio.timeout(60):
            line = await reader.readline()
        sending.cancel()
        GOT[line.split()[1].decode() if line else "closed"] += 1
    except (OSError, TimeoutError, IndexError) as error:
        GOT[type(error).__name__] += 1
    finally:
        writer.close()


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    try:
        for _ in range(size // len(PIECE)):
            writer.write(PIECE)
            await writer.drain()
    except OSError:
        return


async def throw(host: str, port: int, heads: list[str], body: int = 0) -> None:
    """All of it, some at once."""
    left = iter(heads)

    async def work() -> None:
        for head in left:
            await ask(host, port, head, body)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def hold(host: str, port: int, count: int) -> None:
    """Connections that never send a whole head."""
    held = []
    for _ in range(count):
        try:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET / HTTP/1.1\r\nHost: half")
            held.append((reader, writer))
            GOT["open"] += 1
        except OSError:
            GOT["refused"] += 1
    await asyncio.to_thread(sys.stdin.readline)
    for _, writer in held:
        writer.close()


async def main(what: str, host: str, port: int, count: int) -> None:
    print("under way", flush=True)
    match what:
        case "tokens":
            head = "GET /api/conversations HTTP/1.1\r\nAuthorization: Bearer wrong-{:020}"
            await throw(host, port, [head.format(n) for n in range(count)])
        case "bodies":
            heads = [
                f"POST {path} HTTP/1.1\r\nAuthorization: Bearer wrong\r\n{length}"
                for path in (
                    "/api/conversations/c1/messages",
                    "/hooks/deploy",
                    "/api/uploads?name=x",
                )
                for length in (f"Content-Length: {HUGE}", "Transfer-Encoding: chunked")
            ]
            await throw(host, port, [heads[n % len(heads)] for n in range(count)], HUGE)
        case _:
            await hold(host, port, count)
    print(json.dumps(GOT), flush=True)


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
