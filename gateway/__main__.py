"""The composition root, the only module that imports everything: wiring, start and shutdown.

The first poll goes out before anything else is imported; what arrives meanwhile waits at the
platform until the store is open.
"""

import asyncio
import gc
import importlib
import logging
import os
import runpy
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core import ambient
from gateway.errors import DeliveryError, StoreFailed
from gateway.messages import Conversation, Inbound, Sender
from gateway.ops import lock
from gateway.ops.http import Health, listen
from gateway.ops.http import serve as serve_http
from gateway.ports import Adapter, ListScope, Look, Overview, Recent, Summary
from gateway.settings import Settings
from gateway.wiring.menu import Choices, LoadCommands, Menu

if TYPE_CHECKING:
    from adapters.web.gate import RequestGate
    from agent_core.sandboxes.tier import Tier
    from gateway.feature import Command
    from gateway.wiring.agent_default import TurnkeeperAgent
    from gateway.wiring.assembly import Parts

log = logging.getLogger("turnkeeper.main")

PATIENCE = 20.0
"""Seconds that running turns get to finish on shutdown."""
MIN_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds before an adapter runs again that met a bug."""


def ignore_link(link: str) -> None:
    """Do nothing with the link: the default where no browser can be opened."""


async def serve(
    settings: Settings,
    announce: Callable[[str], None],
    visit: Callable[[str], None] = ignore_link,
) -> None:
    """Run a gateway until a signal or `turnkeeper stop`, and anew after each restore. Raises
    SettingsError and StoreFailed, in an ExceptionGroup once it has begun. `announce` gets lines
    for who started it, `visit` the link that signs them in at the page."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_signal_handler(signal.SIGINT, _interrupt, ended)
    with lock.hold(settings.home), listen(settings.host, settings.port) as listening:
        while True:
            gateway = Gateway(settings, announce, visit, ended)
            with listening.dup() as own:
                await gateway.run(own)
            if gateway.unpacked is None:
                return
            await _put_in_place(settings.home, gateway.unpacked)
            gateway.let_go()
            if ended.is_set():
                return


def _interrupt(ended: asyncio.Event) -> None:
    if ended.is_set():
        os._exit(130)  # the conventional exit code after an interrupt
    ended.set()


async def _put_in_place(home: Path, unpacked: Path) -> None:
    """Replace the stored data by a backup; on failure the stored data stays."""
    from gateway.ops.backup import BackupError
    from gateway.ops.restore_swap import swap_in

    try:
        aside = await asyncio.to_thread(swap_in, home, unpacked)
    except BackupError as error:
        log.error("restore_failed", extra={"why": str(error)})  # noqa: TRY400  # explains it
    else:
        log.info("restored", extra={"aside": str(aside)})


class Gateway:
    """The gateway of a process until it ends or a backup is restored: its adapters, the services
    behind them, and its shutdown. `ended` is set once the process is to end."""

    def __init__(
        self,
        settings: Settings,
        announce: Callable[[str], None],
        visit: Callable[[str], None] = ignore_link,
        ended: asyncio.Event | None = None,
    ) -> None:
        self._settings = settings
        self._announce, self._visit = announce, visit
        self._adapters: dict[str, Adapter] = {}
        self._failed: dict[str, str] = {}
        self._parts: Parts | None = None
        self._open = asyncio.Event()
        self._stop = asyncio.Event()
        self._ended = asyncio.Event() if ended is None else ended
        self.unpacked: Path | None = None
        """An unpacked backup to put in place after shutdown."""
        self.let_go: Callable[[], None] = lambda: None
        """Set once nothing holds that backup any longer."""

    def _restore(self, name: str) -> bool:
        """Stop, for the unpacked backup `name` of the data folder."""
        from agent_core.sandboxes.owners import hold_folder
        from gateway.ops.restore_swap import is_unpacked

        if self.unpacked is not None or not is_unpacked(self._settings.home, name):
            return False
        self.unpacked = self._settings.home / name
        self.let_go = partial(os.close, hold_folder(self.unpacked))
        self._stop.set()
        return True

    async def run(self, listening: socket.socket) -> None:
        """Start, serve, drain, end."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            self._reload_on_signal(group)
            self._adapters |= {one.platform: one for one in self._platforms()}
            polls = [group.create_task(self._receive(one)) for one in self._adapters.values()]
            tier = await self._choose_tier(stack)
            from gateway.wiring import assembly

            port = listening.getsockname()[1]
            parts = self._parts = await assembly.assemble(
                self._settings, self._adapters, tier, stack, port
            )
            page, gate = await self._page(parts, listening)
            hints, name = assembly.listen_for_hints(parts), parts.hold_name()
            warm = warm_imports(parts.agent, asks=self._settings.discovery)
            jobs = (parts.host.run(self._open), warm, hints, name)
            work = [group.create_task(job) for job in (*jobs, self._stop_at_end())]
            await self._open.wait()
            work.append(group.create_task(parts.agent.jobs.run()))
            work.append(group.create_task(parts.run_removals()))
            work.append(group.create_task(parts.watch_store()))
            work.append(group.create_task(self._receive(page)))
            await self._open_endpoints(stack, parts, listening, gate)
            await self._stop.wait()
            log.info("draining", extra={"sessions": len(parts.host.sessions)})
            for task in polls:
                task.cancel()
            await parts.host.drain(PATIENCE)
            for task in work:
                task.cancel()
        log.info("stopped")

    async def _choose_tier(self, stack: AsyncExitStack) -> "Tier":
        """Choose the tier of sandboxes, and import all that is behind the adapters meanwhile."""
        await asyncio.to_thread(importlib.import_module, "gateway.wiring.sandboxes")
        from gateway.wiring.sandboxes import choose_tier

        async with asyncio.TaskGroup() as group:
            choosing = group.create_task(choose_tier(self._settings, stack))
            await asyncio.to_thread(importlib.import_module, "gateway.wiring.assembly")
        return choosing.result()

    def _platforms(self) -> Sequence[Adapter]:
        """The adapters of all platforms that are set; only their SDKs are imported."""
        settings = self._settings
        made = (
            _telegram(settings, self._commands),
            _discord(settings, self._commands, self._choices),
            _slack(settings, self._overview, self._list_recent),
        )
        return [one for one in made if one is not None]

    def _commands(self) -> "Mapping[str, Command]":
        """Return all commands, for menus."""
        from gateway.wiring.features import load_features

        return load_features(self._settings.plugins, self._settings.quick).commands

    async def _choices(
        self, conversation: Conversation, sender: Sender, name: str, typed: str
    ) -> Sequence[tuple[str, str]]:
        """Complete a command's argument while it is typed; nothing before the store is open."""
        from gateway.wiring.choices import choices

        if self._parts is None or not self._open.is_set():
            return ()
        return await choices(self._parts.host, conversation, sender, name, typed)

    async def _overview(self, conversation: Conversation, sender: Sender) -> Overview:
        """Return the overview for a person's home view; empty before the store is open."""
        from gateway.wiring.overview import overview

        if self._parts is None or not self._open.is_set():
            return Overview()
        return await overview(self._parts.host, conversation, sender)

    async def _list_recent(self, scope: ListScope, limit: int) -> Sequence[Summary]:
        """The newest conversations of a list, once all is open."""
        await self._open.wait()
        return await self._parts.web_backend.recent(scope, limit) if self._parts else ()

    async def _page(
        self, parts: "Parts", listening: socket.socket
    ) -> "tuple[Adapter, RequestGate]":
        """Build the page's adapter and the gate that decides who may use it."""
        from adapters.web.adapter import WebAdapter
        from adapters.web.gate import RequestGate
        from adapters.web.sessions import SessionBook
        from gateway.wiring.assembly import web_secret

        settings, port = self._settings, listening.getsockname()[1]
        secret, token = await web_secret(parts.services.store), settings.token or None
        book, names = SessionBook(parts.services.store, parts.trail.note), settings.page_names
        count, redeem = parts.services.count, parts.redeem_page_link
        gate = RequestGate(
            secret,
            book,
            settings.host,
            port,
            names=names,
            api_token=token,
            count=count,
            redeem=redeem,
        )
        page = WebAdapter(parts.web_backend, gate, settings.home / "uploads", settings.outputs)
        self._adapters[page.platform] = page
        return page, gate

    async def _open_endpoints(
        self, stack: AsyncExitStack, parts: "Parts", listening: socket.socket, gate: "RequestGate"
    ) -> None:
        """The HTTP server and the control socket; then say so."""
        from adapters.web.api import guard_metrics
        from adapters.web.gate import OWNER
        from adapters.web.hooks import hook_routes
        from adapters.web.jobs import job_routes
        from adapters.web.sign_ins import sign_in_routes
        from gateway.ops import control

        home, url = self._settings.home, self._settings.url(listening.getsockname()[1])
        routes = [route for one in self._adapters.values() for route in one.routes]
        routes += (*hook_routes(parts.hooks), *job_routes(parts.job_backend, gate))
        routes += sign_in_routes(parts.sign_in_pages, gate)
        health = Health(
            store=parts.services.store,
            counters=parts.services.counters,
            slots=parts.services.slots,
            sessions=parts.host.sessions,
            adapters=self._adapters,
            failed=self._failed,
            stopping=self._stop.is_set,
        )

        def issue(name: str) -> str:
            return gate.issue(name or OWNER)

        asked = parts.operations(health, url, issue, self._ended.set, self._restore)
        guard, most = partial(guard_metrics, gate), self._settings.connections
        await stack.enter_async_context(serve_http(listening, health, routes, guard, most))
        await stack.enter_async_context(control.serve(home, asked))
        link = f"{url}signin/{issue('')}"
        self._announce(f"{parts.describe_start(url)}\nopen {link}")
        self._visit(link)

    async def _receive(self, adapter: Adapter) -> None:
        """Run an adapter; its failure does not affect the others. After a bug it runs again: what
        it met need not come back."""
        pause = MIN_PAUSE
        while True:
            self._failed.pop(adapter.platform, None)
            began = ambient.monotonic()
            try:
                return await adapter.run(self._accept)
            except DeliveryError as error:
                self._failed[adapter.platform] = why = str(error)
                log.error("adapter_gave_up", extra={"platform": adapter.platform, "why": why})
                return None
            except Exception:  # boundary: the others go on
                self._failed[adapter.platform] = "a bug; the log says more"
                log.exception("adapter_failed", extra={"platform": adapter.platform})
            if self._parts is not None:
                self._parts.services.count("adapters_failed")
            pause = MIN_PAUSE if ambient.monotonic() - began > MAX_PAUSE else pause
            await ambient.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)

    async def _accept(self, inbounds: Sequence[Inbound]) -> None:
        await self._open.wait()
        if self._parts is None:
            return
        outage = self._parts.services.outage
        try:
            await self._parts.host.accept(inbounds)
        except StoreFailed:
            if outage is not None:
                outage.tell(inbounds)
            raise
        if outage is not None:
            outage.end()

    async def _stop_at_end(self) -> None:
        await self._ended.wait()
        self._stop.set()

    def _reload_on_signal(self, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._reload, group)

    def _reload(self, group: asyncio.TaskGroup) -> None:
        if self._parts is not None:
            group.create_task(self._parts.reload())


async def warm_imports(agent: "TurnkeeperAgent", *, asks: bool) -> None:
    """Import what the first call needs, then freeze the heap, so that garbage collection skips it.

    `asks`: also ask the models' servers for their context windows.
    """
    try:
        await agent.warm()
        gc.freeze()
        if asks:
            await agent.learn_windows()
    except Exception:  # boundary: nothing of it is needed before the first call, which says why
        log.exception("not_warm")


def _telegram(settings: Settings, commands: LoadCommands) -> Adapter | None:
    bot = settings.telegram
    if bot is None:
        return None
    from adapters.telegram.adapter import TelegramAdapter

    hook = (bot.webhook_url, bot.webhook_secret)
    menu = Menu(commands, sorted(settings.people["telegram"].admins - {"*"}))
    where = settings.outputs
    return TelegramAdapter(bot.token, bot.api_base_url, *hook, commands=menu, outputs=where)


def _discord(settings: Settings, commands: LoadCommands, choices: Choices) -> Adapter | None:
    bot = settings.discord
    if bot is None:
        return None
    from adapters.discord.adapter import DiscordAdapter

    return DiscordAdapter(
        bot.token,
        bot.api_base_url,
        bot.gateway_url,
        commands=Menu(commands, choices=choices),
        outputs=settings.outputs,
        memory=settings.home / "discord.json",
        reads=settings.policy.group != "mention",
    )


def _slack(settings: Settings, look: Look, recent: Recent) -> Adapter | None:
    app = settings.slack
    if app is None:
        return None
    from adapters.slack.adapter import SlackAdapter

    return SlackAdapter(app, look, recent, settings.outputs)


if __name__ == "__main__":  # `python -m gateway` is the command line, which imports this module
    runpy.run_module("gateway.cli.main", run_name="__main__")
