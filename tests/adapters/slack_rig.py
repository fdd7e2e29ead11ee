"""What the Slack adapter's tests share: a running adapter on the fake, by either transport."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from adapters.slack.adapter import SlackAdapter
from gateway.accounts.slack import Slack
from gateway.messages import Conversation
from tests.adapters.telegram_rig import Store
from tests.fakes.slack_server import APP_TOKEN, BOT, SECRET, TEAM, TOKEN, SlackServer


def adapter_of(server: SlackServer, transport: str = "socket", **more: object) -> SlackAdapter:
    app, secret = (APP_TOKEN, "") if transport == "socket" else ("", SECRET)
    account = Slack(token=TOKEN, app_token=app, signing_secret=secret, api_base_url=server.base_url)
    return SlackAdapter(account, **more)  # type: ignore[arg-type]


def where(channel: str = "D0ANN", thread: str = "") -> Conversation:
    return Conversation(
        platform="slack", account=BOT, workspace=TEAM, channel=channel, thread=thread,
        private=channel[0] == "D",
    )  # fmt: skip


@contextlib.asynccontextmanager
async def running(
    server: SlackServer, store: Store, transport: str = "socket"
) -> AsyncIterator[SlackAdapter]:
    """The adapter, receiving."""
    adapter = adapter_of(server, transport)
    task = asyncio.create_task(adapter.run(store.accept))
    runner = None
    if transport == "http":
        app = web.Application()
        app.add_routes(adapter.routes)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.hook = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        await server.wait(lambda: server.made("auth.test"))
        while not adapter.last_contact:
            await asyncio.sleep(0)
    else:
        await server.wait(lambda: server.connections or task.done())
    try:
        yield adapter
    finally:
        task.cancel()
        await asyncio.wait([task])
        if runner is not None:
            await runner.cleanup()
