"""Slack on loopback: the Web API methods in use, Socket Mode, and signed events over HTTP; and the
ways they fail."""

import asyncio
import contextlib
import hashlib
import hmac
import io
import itertools
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from aiohttp import ClientSession, WSMsgType, web

from tests.fakes.marks import find_marks
from tests.fakes.slack_limits import Limits
from tests.fakes.slack_schema import check
from tests.fakes.waiting import PATIENCE, wait_until

Json = dict[str, Any]

BOT, TEAM, APP = "U0BOT", "T0TEAM", "A0APP"
TOKEN, APP_TOKEN = "xoxb-1111-2222-fakeBotToken", "xapp-1-A0APP-fakeAppToken"
SECRET = "fake-signing-secret-0123456789"


@dataclass
class Call:
    """One call of the Web API. `json`: how its body came."""

    method: str
    arguments: Json
    json: bool


@dataclass
class Fault:
    """What the next `times` calls get; status 0: the connection breaks without an answer."""

    status: int
    times: int
    body: Json
    headers: dict[str, str]
    after_effect: bool


class Refusal(Exception):
    """`ok: false`."""


@dataclass
class SlackServer:
    """One workspace with one app. `channels`: what the bot's messages show now, with `edits`."""

    channels: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    calls: list[Call] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    ephemeral: list[Json] = field(default_factory=list)
    responses: dict[str, Json] = field(default_factory=dict)
    """By what a `response_url` ends in: for whom it is. Without it the address has expired."""
    reactions: list[tuple[str, str, str]] = field(default_factory=list)
    """Channel, message and name."""
    reacted: list[tuple[str, str, str]] = field(default_factory=list)
    """The same, with those that the app took back."""
    views: list[Json] = field(default_factory=list)
    sessions: dict[tuple[str, str], str] = field(default_factory=dict)
    """The agent sessions' statuses, by channel and thread."""
    homes: dict[str, Json] = field(default_factory=dict)
    """The published homes, by person."""
    me: Json = field(default_factory=dict)
    """What auth.test tells besides."""
    people: dict[str, Json] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """Channels that the bot is no member of any more."""
    groups: dict[str, list[str]] = field(default_factory=dict)
    """User groups and who is in them."""
    files: dict[str, bytes] = field(default_factory=dict)
    """What people sent, by file id."""
    uploads: dict[str, tuple[str, bytes, str]] = field(default_factory=dict)
    upload_status: int = 200
    """What the place for files answers; 0 breaks the connection."""
    """What the bot sent: (name, content, alternative text)."""
    acknowledged: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """What the app answered over HTTP."""
    page: int = 999
    """Most messages of a page that is read back."""
    limits: Limits | None = None
    """How many calls are taken; None: all."""
    deaf: bool = False
    """What happens is told to nobody: the app is away for longer than Slack tries."""
    foreign: set[str] = field(default_factory=set)
    """Chats in which the bot is not."""
    mute: int = 0
    """How many connections get no hello."""
    away: list[int] = field(default_factory=list)
    """What the next calls get, of whichever method: the status of each, 0 for no answer."""
    hook: str = ""
    """Where events are posted; empty: Socket Mode."""
    base_url: str = ""

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._clock = itertools.count(int(time.time()))
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self._gates: dict[str, asyncio.Event] = {}
        self._silent: set[str] = set()
        self._changed = asyncio.Event()
        self._sockets: list[web.WebSocketResponse] = []
        self._tickets: set[str] = set()
        self._waiting: dict[str, Json] = {}
        """Envelopes that were not acknowledged."""
        self._triggers: set[str] = set()
        self._said: dict[tuple[str, str], Json] = {}
        self._posting: set[asyncio.Task[None]] = set()
        self._order = asyncio.Lock()

    # ---- life ----------------------------------------------------------------------------
    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/api/{method}", self._serve)
        app.router.add_get("/socket/{ticket}", self._socket)
        app.router.add_post("/upload/{file}", self._uploaded)
        app.router.add_get("/files/{file}", self._file)
        app.router.add_post("/respond/{trigger}", self._respond)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._root = f"127.0.0.1:{self._runner.addresses[0][1]}"
        self.base_url = f"http://{self._root}/api/"
        self._session = ClientSession()
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._posting:
            task.cancel()
        for gate in self._gates.values():
            gate.set()
        await self._session.close()
        for socket in self._sockets:
            with contextlib.suppress(Exception):
                await socket.close()
        await self._runner.cleanup()

    # ---- what people do ------------------------------------------------------------------
    def say(
        self, channel: str, text: str, user: str = "U0ANN", thread: str = "", **more: object
    ) -> Json:
        """A person writes; the payload of the event."""
        event = {"type": "message", "channel": channel, "user": user, "text": text}
        event |= {"ts": self.stamp(), "channel_type": "im" if channel[0] == "D" else "channel"}
        event |= {"client_msg_id": f"m{next(self._numbers)}", "team": TEAM}
        event |= ({"thread_ts": thread} if thread else {}) | more
        self._said[channel, event["ts"]] = event
        return self.event(event)

    def mention(
        self, channel: str, text: str, user: str = "U0ANN", thread: str = "", **more: object
    ) -> tuple[Json, Json]:
        """A person names the bot: two events, as Slack sends them."""
        said = self.say(channel, f"<@{BOT}> {text}", user, thread, **more)
        again = {key: value for key, value in said["event"].items() if key != "channel_type"}
        return said, self.event(again | {"type": "app_mention"})

    def edit(self, channel: str, ts: str, text: str) -> Json:
        before = dict(self._said[channel, ts])
        after = self._said[channel, ts] = before | {
            "text": text,
            "edited": {"user": before["user"], "ts": ts},
        }
        event = {
            "type": "message",
            "subtype": "message_changed",
            "channel": channel,
            "ts": self.stamp(),
        }
        return self.event(event | {"message": after, "previous_message": before, "hidden": True})

    def delete(self, channel: str, ts: str) -> Json:
        before = self._said.pop((channel, ts))
        event = {
            "type": "message",
            "subtype": "message_deleted",
            "channel": channel,
            "ts": self.stamp(),
        }
        return self.event(event | {"deleted_ts": ts, "previous_message": before, "hidden": True})

    def press(self, message: Json, label: str, user: str = "U0ANN", team: str = TEAM) -> Json:
        """A person of the workspace `team` presses the button, or chooses the option, that begins
        with `label`."""
        channel = message["channel"]
        action: Json = {}
        for one in elements(message):
            if one["type"] == "button" and one["text"]["text"].startswith(label):
                action = {"value": one["value"]}
            for option in one.get("options", ()):
                if option["text"]["text"].startswith(label):
                    action = {"selected_option": option}
            if action:
                action |= {"action_id": one["action_id"], "type": one["type"], "block_id": "b"}
                break
        assert action, f"no button {label}"
        shown = {"ts": message["ts"], "user": BOT, "text": message["text"]}
        if "thread_ts" in message:
            shown["thread_ts"] = message["thread_ts"]
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower()} | ({"team_id": team} if team else {}),
        }
        payload |= {
            "api_app_id": APP,
            "team": {"id": TEAM},
            "channel": {"id": channel},
            "message": shown,
        }
        payload |= {
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel}
        }
        payload |= {"actions": [action | {"action_ts": self.stamp()}], "trigger_id": self.trigger()}
        return self.push("interactive", payload)

    def open_home(self, user: str = "U0ANN", channel: str = "D0ANN") -> Json:
        """A person opens the app's home."""
        event = {"type": "app_home_opened", "user": user, "channel": channel, "tab": "home"}
        return self.event(event | {"event_ts": self.stamp()})

    def press_at_home(self, label: str, user: str = "U0ANN") -> Json:
        """A person presses the first button of this label in their home."""
        view = self.homes[user]
        one = next(e for e in elements(view) if e["text"]["text"] == label)
        action = {"value": one["value"], "action_id": one["action_id"], "type": "button"}
        payload = {"type": "block_actions", "user": {"id": user, "team_id": TEAM}}
        payload |= {"api_app_id": APP, "team": {"id": TEAM}, "trigger_id": self.trigger()}
        payload |= {"container": {"type": "view", "view_id": "V0HOME"}}
        payload |= {"view": {"type": "home", "id": "V0HOME"}}
        return self.push(
            "interactive", payload | {"actions": [action | {"action_ts": self.stamp()}]}
        )

    def stop(self, channel: str, thread: str, user: str = "U0ANN") -> Json:
        """A person presses Slack's own stop button, which ends the thread's streams."""
        assert self.sessions[channel, thread] == "processing", "there is no such button"
        ended = [
            message
            for message in self.channels[channel]
            if message.get("streaming_state") == "in_progress" and message["thread_ts"] == thread
        ]
        for message in ended:
            message["streaming_state"] = "completed"
        event = {"type": "agent_session_stopped", "channel": channel, "thread_ts": thread}
        stopped = {"streaming_message_ts": [message["ts"] for message in ended]}
        return self.event(event | stopped | {"user": user, "event_ts": self.stamp()})

    def submit(self, view: Json, text: str, user: str = "U0ANN") -> Json:
        """A person sends a modal off."""
        block = view["blocks"][0]
        values = {
            block["block_id"]: {
                block["element"]["action_id"]: {"type": "plain_text_input", "value": text or None}
            }
        }
        shown = {
            "id": view["id"],
            "callback_id": view["callback_id"],
            "private_metadata": view["private_metadata"],
        }
        payload = {
            "type": "view_submission",
            "user": {"id": user},
            "team": {"id": TEAM},
            "api_app_id": APP,
        }
        return self.push("interactive", payload | {"view": shown | {"state": {"values": values}}})

    def choose(self, channel: str, ts: str, user: str = "U0ANN", name: str = "ask_about") -> Json:
        """A person chooses the shortcut `name` in the menu of somebody's message."""
        said = self._said[channel, ts]
        message = {
            key: value for key, value in said.items() if key not in ("channel", "channel_type")
        }
        payload = {"type": "message_action", "callback_id": name, "trigger_id": self.trigger()}
        payload |= {"user": {"id": user, "name": user.lower()}, "team": {"id": TEAM, "domain": "t"}}
        payload |= {"channel": {"id": channel, "name": "dev"}, "message": message}
        payload |= {
            "message_ts": ts,
            "action_ts": self.stamp(),
            "response_url": "https://x.invalid",
        }
        return self.push("interactive", payload)

    def command(self, channel: str, text: str, user: str = "U0ANN") -> Json:
        """`/turnkeeper text`."""
        payload = {"command": "/turnkeeper", "text": text, "user_id": user, "channel_id": channel}
        trigger = self.trigger()
        payload |= {"team_id": TEAM, "trigger_id": trigger, "api_app_id": APP}
        payload["response_url"] = f"http://{self._root}/respond/{trigger}"
        self.responses[trigger] = {"channel": channel, "user": user}
        return self.push("slash_commands", payload)

    def event(self, event: Json) -> Json:
        payload = {"type": "event_callback", "team_id": TEAM, "api_app_id": APP, "event": event}
        payload |= {"event_id": f"Ev{next(self._numbers)}", "event_time": int(time.time())}
        return self.push("events_api", payload)

    def push(self, kind: str, payload: Json, retry: int = 0) -> Json:
        """Any payload, over whichever transport is in use; `retry`: it is a redelivery."""
        if self.deaf:
            return payload
        if self.hook:
            task = asyncio.create_task(self._post(kind, payload, retry))
            self._posting.add(task)
            task.add_done_callback(self._posting.discard)
            return payload
        envelope = {"envelope_id": f"e{next(self._numbers)}", "type": kind, "payload": payload}
        envelope |= {"accepts_response_payload": kind != "events_api", "retry_attempt": retry}
        self._waiting[envelope["envelope_id"]] = envelope
        if self._sockets:
            self._send(self._sockets[-1], envelope)
        return payload

    def again(self, payload: Json, retry: int = 1) -> Json:
        """The same event once more."""
        return self.push("events_api", payload, retry)

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Slack wants the newest connection renewed."""
        self._send(self._sockets[-1], {"type": "disconnect", "reason": reason})

    async def cut(self) -> None:
        """All connections break."""
        for socket in list(self._sockets):
            await socket.close()

    @property
    def connections(self) -> int:
        return len(self._sockets)

    @property
    def unacknowledged(self) -> int:
        return len(self._waiting)

    def stamp(self) -> str:
        return f"{next(self._clock)}.{next(self._numbers):06d}"

    def trigger(self) -> str:
        name = f"trigger{next(self._numbers)}"
        self._triggers.add(name)
        return name

    # ---- how things go wrong -------------------------------------------------------------
    def fail(
        self, method: str, status: int = 200, error: str = "", times: int = 1, retry_after: float = 0,
        after_effect: bool = False,
    ) -> None:  # fmt: skip
        """The next `times` calls get this; they are carried out all the same if `after_effect`."""
        headers = {"Retry-After": str(retry_after)} if retry_after else {}
        body = {"ok": False, "error": error}
        self._faults[method].append(Fault(status, times, body, headers, after_effect))

    def hold(self, method: str) -> None:
        self._gates[method] = asyncio.Event()

    def hold_answers(self, method: str) -> None:
        """Calls are carried out; who called does not hear of it until the release."""
        self.hold(method)
        self._silent.add(method)

    def release(self, method: str) -> None:
        self._silent.discard(method)
        self._gates.pop(method).set()

    # ---- waiting -------------------------------------------------------------------------
    def _note(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, met: Callable[[], object], timeout: float = PATIENCE) -> None:
        """Until `met`."""
        await wait_until(met, lambda: self._changed, timeout)

    async def shows(self, channel: str, text: str) -> Json:
        """The newest message there that shows `text`, once there is one."""

        def found() -> list[Json]:
            return [m for m in self.channels[channel] if text in shown(m)]

        await self.wait(found)
        return found()[-1]

    def made(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    # ---- the Web API ---------------------------------------------------------------------
    async def _serve(self, request: web.Request) -> web.StreamResponse:
        call = await self._read(request)
        self.calls.append(call)
        self._note()
        if self.away:
            status = self.away.pop()
            if not status and request.transport:
                request.transport.abort()
            return web.Response(status=status or 200, text="<html>", content_type="text/html")
        gate = self._gates.get(call.method)
        if gate and call.method not in self._silent:
            await gate.wait()
        if self.limits and (
            wait := self.limits.ask(call.method, call.arguments.get("channel", ""))
        ):
            headers = {"Retry-After": f"{wait:.3f}"}
            return web.json_response(
                {"ok": False, "error": "ratelimited"}, status=429, headers=headers
            )
        faults = self._faults[call.method]
        fault = faults[0] if faults else None
        if fault:
            fault.times -= 1
            if not fault.times:
                faults.pop(0)
        status, body = 200, {"ok": False, "error": "invalid_auth"}
        wanted = APP_TOKEN if call.method == "apps.connections.open" else TOKEN
        if request.headers.get("Authorization") == f"Bearer {wanted}" and (
            not fault or fault.after_effect
        ):
            self.violations += check(call.method, call.arguments) + find_marks(call.arguments)
            handler = getattr(self, f"_on_{call.method.replace('.', '_').lower()}", None)
            try:
                if call.arguments.get("channel") in self.left:
                    raise Refusal("not_in_channel")
                body = (
                    {"ok": True} | handler(call.arguments)
                    if handler
                    else {"ok": False, "error": "unknown_method"}
                )
            except Refusal as refusal:
                body = {"ok": False, "error": str(refusal)}
        self._note()
        if gate:
            await gate.wait()
        if fault and fault.status == 0:
            if request.transport:
                request.transport.abort()
            return web.Response()
        if fault:
            status, body = fault.status, fault.body
            return web.json_response(body, status=status, headers=fault.headers)
        return web.json_response(body, status=status)

    async def _read(self, request: web.Request) -> Call:
        method, kind = request.match_info["method"], request.content_type
        if kind == "application/json":
            arguments = await request.json()
            return Call(method, arguments, True)
        arguments = dict(parse_qsl((await request.read()).decode()))
        arguments.pop("token", None)
        return Call(method, arguments, False)

    def _on_auth_test(self, _: Json) -> Json:
        about = {"user_id": BOT, "team_id": TEAM, "bot_id": "B0BOT", "team": "Test"}
        return about | {"user": "turnkeeper"} | self.me

    def _on_apps_connections_open(self, _: Json) -> Json:
        ticket = f"t{next(self._numbers)}"
        self._tickets.add(ticket)
        return {"url": f"ws://{self._root}/socket/{ticket}"}

    def _on_chat_postmessage(self, given: Json) -> Json:
        message = {"user": BOT, "edits": 0, "ts": self.stamp()} | given
        self.channels[given["channel"]].append(message)
        return {
            "channel": given["channel"],
            "ts": message["ts"],
            "message": {"text": given.get("text")},
        }

    def _on_chat_update(self, given: Json) -> Json:
        message = self._find(given["channel"], given["ts"])
        if message.get("streaming_state") == "in_progress":
            raise Refusal("streaming_state_conflict")
        message.pop("blocks", None)
        message |= {name: given[name] for name in ("text", "blocks") if name in given}
        message["edits"] += 1
        return {"channel": given["channel"], "ts": given["ts"]}

    def _on_chat_delete(self, given: Json) -> Json:
        message = self._find(given["channel"], given["ts"])
        self.channels[given["channel"]].remove(message)
        self.event(
            {
                "type": "message",
                "subtype": "message_deleted",
                "channel": given["channel"],
                "ts": self.stamp(),
                "deleted_ts": given["ts"],
                "previous_message": message,
                "hidden": True,
            }
        )
        return {"channel": given["channel"], "ts": given["ts"]}

    def _on_chat_startstream(self, given: Json) -> Json:
        message = {"user": BOT, "edits": 0, "ts": self.stamp(), "channel": given["channel"]}
        message |= {"thread_ts": given["thread_ts"], "text": "", "blocks": []}
        self.channels[given["channel"]].append(message | {"streaming_state": "in_progress"})
        if given.get("task_display_mode") == "plan":
            plan = {"type": "plan", "title": "", "tasks": []}
            self.channels[given["channel"]][-1]["blocks"].append(plan)
        streamed(self.channels[given["channel"]][-1], given["chunks"])
        self.sessions[given["channel"], given["thread_ts"]] = "processing"
        return {"channel": given["channel"], "ts": message["ts"]}

    def _on_chat_appendstream(self, given: Json) -> Json:
        streamed(self._streaming(given), given["chunks"])
        return {"channel": given["channel"], "ts": given["ts"]}

    def _on_chat_stopstream(self, given: Json) -> Json:
        message = self._streaming(given)
        streamed(message, given.get("chunks", []))
        message["blocks"] += given.get("blocks", [])
        message["streaming_state"] = "completed"
        self.sessions[given["channel"], message["thread_ts"]] = "active"
        return {"channel": given["channel"], "ts": given["ts"]}

    def _streaming(self, given: Json) -> Json:
        message = self._find(given["channel"], given["ts"])
        if message.get("streaming_state") != "in_progress":
            raise Refusal("message_not_in_streaming_state")
        return message

    def _on_agents_sessions_setstatus(self, given: Json) -> Json:
        self.sessions[given["channel_id"], given["thread_ts"]] = given["status"]
        return {"status": given["status"]}

    async def _respond(self, request: web.Request) -> web.Response:
        """A word for who gave a command, by the address that came with it."""
        said, whom = await request.json(), self.responses.get(request.match_info["trigger"])
        assert said["response_type"] == "ephemeral"
        if whom is None:
            return web.json_response({"ok": False, "error": "expired_url"}, status=404)
        self.ephemeral.append(whom | said)
        self._note()
        return web.Response(text="ok")

    def _on_chat_postephemeral(self, given: Json) -> Json:
        self.ephemeral.append(given)
        return {"message_ts": self.stamp()}

    def _on_reactions_add(self, given: Json) -> Json:
        reaction = (given["channel"], given["timestamp"], given["name"])
        if reaction in self.reactions:
            raise Refusal("already_reacted")
        self.reactions.append(reaction)
        self.reacted.append(reaction)
        return {}

    def _on_reactions_remove(self, given: Json) -> Json:
        reaction = (given["channel"], given["timestamp"], given["name"])
        if reaction not in self.reactions:
            raise Refusal("no_reaction")
        self.reactions.remove(reaction)
        return {}

    def _on_views_open(self, given: Json) -> Json:
        if given["trigger_id"] not in self._triggers:
            raise Refusal("expired_trigger_id")
        self._triggers.discard(given["trigger_id"])
        self.views.append(given["view"] | {"id": f"V{next(self._numbers)}"})
        return {"view": self.views[-1]}

    def _on_views_publish(self, given: Json) -> Json:
        self.homes[given["user_id"]] = given["view"]
        return {"view": given["view"]}

    def _on_users_info(self, given: Json) -> Json:
        user = given["user"]
        about = {
            "id": user,
            "name": user.lower(),
            "team_id": TEAM,
            "locale": "en-US",
            "profile": {"display_name": user[2:].title()},
        }
        return {"user": about | self.people.get(user, {})}

    def _on_usergroups_list(self, _: Json) -> Json:
        found = [
            {"id": name, "users": users, "date_delete": 0} for name, users in self.groups.items()
        ]
        return {"usergroups": found}

    def _on_files_info(self, given: Json) -> Json:
        if given["file"] not in self.files:
            raise Refusal("file_not_found")
        return {
            "file": {
                "id": given["file"],
                "url_private_download": f"http://{self._root}/files/{given['file']}",
            }
        }

    def _on_files_getuploadurlexternal(self, given: Json) -> Json:
        file = f"F{next(self._numbers):04d}"
        self.uploads[file] = (given["filename"], b"", given.get("alt_txt", ""))
        return {"upload_url": f"http://{self._root}/upload/{file}", "file_id": file}

    def _on_files_completeuploadexternal(self, given: Json) -> Json:
        message = {"user": BOT, "edits": 0, "ts": self.stamp(), "channel": given["channel_id"]}
        message |= {
            "text": given.get("initial_comment", ""),
            "files": [one["id"] for one in given["files"]],
        }
        if "thread_ts" in given:
            message["thread_ts"] = given["thread_ts"]
        self.channels[given["channel_id"]].append(message)
        return {"files": given["files"]}

    def _on_conversations_history(self, given: Json) -> Json:
        """What stands outside threads, newest first."""
        return self._page(given, [m for m in self._all(given) if is_top(m)][::-1])

    def _on_conversations_replies(self, given: Json) -> Json:
        """A thread from its beginning on, which comes along always."""
        thread = given["ts"]
        roots = [m for m in self._all(given | {"oldest": "0"}) if m["ts"] == thread]
        replies = [m for m in self._all(given) if m.get("thread_ts") == thread != m["ts"]]
        return self._page(given, roots + replies)

    def _all(self, given: Json) -> list[Json]:
        channel = given["channel"]
        if channel in self.foreign:
            raise Refusal("channel_not_found")
        said = [event for (where, _), event in self._said.items() if where == channel]
        found = sorted([*self.channels[channel], *said], key=lambda m: float(m["ts"]))
        return [m for m in found if float(m["ts"]) > float(given.get("oldest", 0))]

    def _page(self, given: Json, found: list[Json]) -> Json:
        at, most = int(given.get("cursor") or 0), min(int(given.get("limit", 100)), self.page)
        more = len(found) > at + most
        cursor = {"next_cursor": str(at + most) if more else ""}
        page = [{k: v for k, v in m.items() if k not in ("edits", "channel")} for m in found]
        return {"messages": page[at : at + most], "has_more": more, "response_metadata": cursor}

    def _find(self, channel: str, ts: str) -> Json:
        for message in self.channels[channel]:
            if message["ts"] == ts:
                return message
        raise Refusal("message_not_found")

    async def _uploaded(self, request: web.Request) -> web.Response:
        file = request.match_info["file"]
        name, _, alt = self.uploads[file]
        content = await request.read()
        if self.upload_status == 0 and request.transport:
            request.transport.abort()
        if self.upload_status != 200:
            return web.Response(status=self.upload_status or 500, headers={"Location": "/login"})
        self.uploads[file] = (name, content, alt)
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=302, headers={"Location": "/login"})
        return web.Response(body=self.files[request.match_info["file"]])

    # ---- Socket Mode ---------------------------------------------------------------------
    async def _socket(self, request: web.Request) -> web.StreamResponse:
        ticket = request.match_info["ticket"]
        if ticket not in self._tickets:
            return web.Response(status=408)
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if self.mute:
            self.mute -= 1
            await socket.receive()
            return socket
        await socket.send_json({"type": "hello", "num_connections": 1})
        self._sockets.append(socket)
        self._note()
        for envelope in list(self._waiting.values()):
            await socket.send_json(envelope)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._acknowledge(json.loads(message.data))
        finally:
            self._sockets.remove(socket)
            self._note()
        return socket

    def _acknowledge(self, answer: Json) -> None:
        name = answer.get("envelope_id", "")
        if set(answer) - {"envelope_id", "payload"} or name not in self._waiting:
            if name not in self.acknowledged:
                self.violations.append(f"an acknowledgement of nothing: {answer}")
            return
        del self._waiting[name]
        self.acknowledged.append(name)
        self._note()

    def _send(self, socket: web.WebSocketResponse, message: Json) -> None:
        task = asyncio.create_task(self._sent(socket, message))
        self._posting.add(task)
        task.add_done_callback(self._posting.discard)

    async def _sent(self, socket: web.WebSocketResponse, message: Json) -> None:
        with contextlib.suppress(ConnectionError):
            await socket.send_json(message)

    # ---- HTTP ----------------------------------------------------------------------------
    async def _post(self, kind: str, payload: Json, retry: int) -> None:
        async with self._order:
            for attempt in range(retry, retry + 4):
                headers = (
                    {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": "http_error"}
                    if attempt
                    else {}
                )
                status = await self.request(*packed(kind, payload), headers)
                if status == 200 or kind != "events_api":
                    return
                await asyncio.sleep(0.05)

    async def request(
        self, body: bytes, kind: str, headers: Json, at: float = 0, secret: str = SECRET
    ) -> int:
        """A signed request to the app; its status."""
        stamp = str(int(at or time.time()))
        signature = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256)
        signed = {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": f"v0={signature.hexdigest()}",
        }
        async with self._session.post(
            self.hook, data=io.BytesIO(body), headers=signed | {"Content-Type": kind} | headers
        ) as answer:
            self.answers.append(answer.status)
            self.last_answer = await answer.text()
        self._note()
        return answer.status


def packed(kind: str, payload: Json) -> tuple[bytes, str]:
    """A payload as it goes over HTTP: body and content type."""
    if kind == "events_api":
        return json.dumps(payload).encode(), "application/json"
    form = payload if kind == "slash_commands" else {"payload": json.dumps(payload)}
    return urlencode(form).encode(), "application/x-www-form-urlencoded"


def is_top(message: Json) -> bool:
    """It stands in the channel itself."""
    return message.get("thread_ts", message["ts"]) == message["ts"]


def streamed(message: Json, chunks: list[Json]) -> None:
    """The chunks come to what the message shows: text and a task's details and output grow."""
    plan = next((one for one in message["blocks"] if one["type"] == "plan"), None)
    for chunk in chunks:
        blocks = message["blocks"]
        if chunk["type"] == "plan_update":
            assert plan is not None, "a title needs the display mode plan"
            plan["title"] = chunk["title"]
            continue
        if chunk["type"] == "blocks":
            blocks += chunk["blocks"]
            continue
        if chunk["type"] == "markdown_text":
            if blocks and blocks[-1]["type"] == "markdown":
                blocks[-1]["text"] += chunk["text"]
            else:
                blocks.append({"type": "markdown", "text": chunk["text"]})
            continue
        cards = plan["tasks"] if plan is not None else blocks
        card = next((one for one in cards if one.get("task_id") == chunk["id"]), None)
        if card is None:
            card = {"type": "task_card", "task_id": chunk["id"]}
            cards.append(card)
        card |= {"title": chunk["title"], "status": chunk["status"]}
        for name in ("details", "output"):
            if name in chunk:
                run = {"type": "text", "text": ""}
                part = {"type": "rich_text_preformatted", "elements": [run]}
                rich = card.setdefault(name, {"type": "rich_text", "elements": [part]})
                rich["elements"][0]["elements"][0]["text"] += chunk[name]


def elements(message: Json) -> list[Json]:
    """The buttons and lists of a message."""
    return [
        e
        for block in message.get("blocks", ())
        if block["type"] == "actions"
        for e in block["elements"]
    ]


def labels(message: Json) -> list[str]:
    return [one["text"]["text"] for one in elements(message) if one["type"] == "button"]


OWN_TIME = re.compile(r"<!date\^\d+\^[^|>]*\|([^>]*)>")


def shown(message: Json) -> str:
    """All that one reads in a message; moments in the words for clients that know none."""
    text = "\n".join(_read(message.get("blocks", ()))) or message.get("text", "")
    return show_times(text)


def show_times(text: str) -> str:
    """`text` with its times in the words for clients that know none."""
    return OWN_TIME.sub(lambda found: found[1], text)


def _read(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[name] for name in ("title", "text") if isinstance(value.get(name), str)]
        return own + [
            line for one in value.values() if not isinstance(one, str) for line in _read(one)
        ]
    if not isinstance(value, list):
        return []
    if any(isinstance(one, dict) and one.get("type") == "date" for one in value):
        return ["".join(one.get("text") or one["fallback"] for one in value)]
    return [line for one in value for line in _read(one)]
