"""A Discord on loopback: the routes and the gateway events that are used, and the ways they fail."""

import asyncio
import itertools
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Any, Self

from aiohttp import web

from tests.fakes.discord_gateway import GatewayServer
from tests.fakes.discord_rights import Barred, ServerRights
from tests.fakes.discord_schema import (
    THREAD,
    WHISPER,
    check_answer,
    check_commands,
    check_message,
    fields,
    walk,
)
from tests.fakes.marks import find_marks
from tests.fakes.waiting import PATIENCE, wait_until

Json = dict[str, Any]
BOT, APPLICATION = "4001", "4002"
GUILD = "7000"
PROMPT = 3.0
"""Seconds that an interaction may wait for its answer."""

UNDER_WAY = 0.1
"""Seconds within which calls come that were made before a refusal was heard."""


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, code: int = 0, **more: Any) -> None:
        super().__init__(message)
        self.status, self.body = status, {"message": message, "code": code} | more


@dataclass
class Call:
    """One request: `name` is its route's, `params` its JSON."""

    name: str
    path: str
    params: Any
    files: dict[str, bytes]
    at: float
    status: int = 0
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Fault:
    status: int
    times: int
    body: Json
    done: bool


@dataclass
class DiscordServer:
    """One bot's Discord. `chats`: what the bot's messages show now, by channel."""

    token: str = "NDAwMQ.Gtest.secret-part"
    chats: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    calls: list[Call] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    whispers: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """interaction -> the words that only its person sees."""
    answers: dict[str, Json] = field(default_factory=dict)
    """interaction -> its first answer."""
    commands: list[Json] = field(default_factory=list)
    threads: dict[str, str] = field(default_factory=dict)
    """thread -> its channel."""
    typing: list[str] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """message -> the bot's reactions to it."""
    reacted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The same, with those that the bot took back."""
    titles: dict[str, str] = field(default_factory=dict)
    """thread -> its name, of those that the bot made."""
    threads_allowed: bool = True
    """The bot may make threads."""
    names: dict[int, str] = field(default_factory=dict)
    """person -> the name that all see, if it is not U and the number."""
    roles: dict[int, list[str]] = field(default_factory=dict)
    """person -> the ids of their roles in the server."""
    left: set[int] = field(default_factory=set)
    """People who are not in the server any more."""
    locale: str = "en-US"
    files: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[str, bytes]] = field(default_factory=dict)
    limits: dict[str, tuple[int, float]] = field(default_factory=dict)
    """route -> calls in so many seconds."""
    most_a_second: int = 0
    """Calls on all routes but those of interactions; 0 = any number."""
    early: list[str] = field(default_factory=list)
    """Buckets into which a call came again before the time that a refusal had told."""
    delays: list[float] = field(default_factory=list)
    """Seconds that each interaction waited for its answer."""

    def __post_init__(self) -> None:
        self.user = {"id": BOT, "username": "test_bot", "global_name": None, "bot": True}
        self.gateway = GatewayServer(self.token, self.user, {"id": APPLICATION, "flags": 0})
        self.gateway.violations = self.violations
        self.rights = ServerRights(self, GUILD)
        self._ids = itertools.count(1)
        self._said: dict[str, Json] = {}
        self._gone: set[str] = set()
        self._never: set[int] = set()
        self._nonces: dict[tuple[str, str], Json] = {}
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self._gates: dict[str, asyncio.Event] = {}
        self._silent: set[str] = set()
        self._asked: dict[str, tuple[str, float]] = {}
        self._told: dict[str, tuple[float, float]] = {}
        self._buckets: dict[str, list[float]] = defaultdict(list)

    # ---- life ----------------------------------------------------------------------------
    async def start(self) -> str:
        app = web.Application(client_max_size=32 << 20)
        for method, path, name in (
            ("GET", "/users/@me", "me"),
            ("GET", "/users/{person}", "person"),
            ("GET", "/channels/{channel}", "channel"),
            ("PATCH", "/channels/{channel}", "unarchive"),
            ("GET", "/guilds/{guild}/roles", "guild_roles"),
            ("GET", "/guilds/{guild}/channels", "guild_channels"),
            ("GET", "/guilds/{guild}/members/{person}", "member"),
            ("POST", "/channels/{channel}/messages", "send"),
            ("PATCH", "/channels/{channel}/messages/{message}", "edit"),
            ("DELETE", "/channels/{channel}/messages/{message}", "remove"),
            ("GET", "/channels/{channel}/messages", "history"),
            ("GET", "/channels/{channel}/messages/{message}", "look"),
            ("POST", "/channels/{channel}/messages/{message}/threads", "open"),
            ("POST", "/channels/{channel}/typing", "type"),
            ("PUT", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", "react"),
            ("DELETE", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me", "unreact"),
            ("POST", "/interactions/{number}/{token}/callback", "answer"),
            ("POST", "/webhooks/{application}/{token}", "whisper"),
            ("DELETE", "/webhooks/{application}/{token}/messages/@original", "take_back"),
            ("PUT", "/applications/{application}/commands", "menu"),
        ):
            app.router.add_route(method, f"/api/v10{path}", self._served(name))
        app.router.add_get("/files/{name}", self._file)
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_route("*", "/{rest:.*}", self._nowhere)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.api_url = f"{self.base}/api/v10"
        self.gateway.url = self.base.replace("http", "ws") + "/gateway"
        return self.api_url

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        for gate in self._gates.values():
            gate.set()
        await self.gateway.close()
        await self._runner.cleanup()
        late = [one for one, (_, at) in self._asked.items() if time.monotonic() - at > PROMPT]
        self.violations += [f"interaction {one} got no answer" for one in late]

    # ---- what people do ------------------------------------------------------------------
    def new_id(self) -> str:
        """A snowflake: made now, never twice."""
        return str(((int(time.time() * 1000) - 1_420_070_400_000) << 22) + next(self._ids))

    def person(self, user: int) -> Json:
        name = self.names.get(user, f"U{user}")
        return {"id": str(user), "username": f"user{user}", "global_name": name}

    def place(self, channel: str) -> Json:
        """The fields that say where: chats with one person are named d and their id."""
        if channel.startswith("9000"):
            return {"channel_id": channel}
        return {"channel_id": channel, "guild_id": GUILD}

    async def say(
        self, channel: str, text: str, user: int, reply_to: str = "", **more: Any
    ) -> Json:
        """A person writes; the event. `@bot` in the text mentions it."""
        mentions = [self.user] if "@bot" in text else []
        content = text.replace("@bot", f"<@{BOT}>")
        number = self.new_id()
        message = {
            "id": number, "type": 0, "content": content, "author": self.person(user),
            "mentions": mentions, "attachments": [], "embeds": [], "timestamp": "2026-01-01",
            "edited_timestamp": None, "flags": 0,
        } | self.place(channel) | more  # fmt: skip
        if "guild_id" in message:
            message["member"] = {"nick": None, "roles": self.roles.get(user, [])}
        if reply_to:
            message |= {"type": 19, "referenced_message": self._find(channel, reply_to)}
        self._said[number] = message
        await self.gateway.dispatch("MESSAGE_CREATE", message)
        return message

    async def change(self, message: Json, text: str) -> None:
        when = f"2026-01-01T00:00:{next(self._ids) % 60:02}+00:00"
        message |= {"content": text.replace("@bot", f"<@{BOT}>"), "edited_timestamp": when}
        named = "@bot" in text or message["type"] == 19
        message["mentions"] = [self.user] if named else []
        await self.gateway.dispatch("MESSAGE_UPDATE", dict(message))

    async def delete(self, message: Json) -> None:
        where = self.place(message["channel_id"])
        self._said.pop(message["id"], None)
        self._gone.add(message["id"])
        await self.gateway.dispatch("MESSAGE_DELETE", {"id": message["id"]} | where)

    async def interact(self, kind: int, channel: str, user: int, data: Json, **more: Any) -> str:
        """Any interaction; its id."""
        number = self.new_id()
        where = self.place(channel)
        roles = self.roles.get(user, [])
        who = {"member": {"user": self.person(user), "nick": None, "roles": roles}}
        if "guild_id" not in where:
            who = {"user": self.person(user)}
        about = {"id": channel, "type": 0 if "guild_id" in where else 1}
        if channel in self.threads:
            about |= {"type": 11, "parent_id": self.threads[channel]}
        event = {
            "id": number, "application_id": APPLICATION, "type": kind, "data": data, "version": 1,
            "token": f"token-{number}", "locale": self.locale, "channel": about,
        } | where | who | more  # fmt: skip
        self._asked[number] = (f"token-{number}", time.monotonic())
        await self.gateway.dispatch("INTERACTION_CREATE", event)
        return number

    async def press(self, message: Json, label: str, user: int) -> str:
        """A person presses a button of a message, or chooses from its list; the interaction."""
        for one in walk(message["components"]):
            if one["type"] == 2 and one["label"].startswith(label):
                data = {"custom_id": one["custom_id"], "component_type": 2}
                return await self.interact(3, message["channel_id"], user, data, message=message)
            for option in one.get("options", ()):
                if option["label"].startswith(label):
                    data = {"custom_id": one["custom_id"], "component_type": 3}
                    data["values"] = [option["value"]]
                    where = message["channel_id"]
                    return await self.interact(3, where, user, data, message=message)
        raise AssertionError(f"no button {label!r} in {message}")

    async def command(self, channel: str, name: str, user: int, text: str = "") -> str:
        data: Json = {"id": "1", "name": name, "type": 1}
        if text:
            data["options"] = [{"type": 3, "name": "text", "value": text}]
        return await self.interact(2, channel, user, data)

    async def type(self, channel: str, name: str, user: int, text: str = "") -> list[str]:
        """Somebody types a slash command: what it may go on with."""
        option = {"type": 3, "name": "text", "value": text, "focused": True}
        data = {"id": "1", "name": name, "type": 1, "options": [option]}
        number = await self.interact(4, channel, user, data)
        await self.wait(lambda: number in self.answers)
        return [one["value"] for one in self.answers[number]["data"]["choices"]]

    async def fill_in(self, message: Json, label: str, text: str, user: int) -> str:
        """Press a button that opens a modal, and send what it asks for."""
        pressed = await self.press(message, label, user)
        await self.wait(lambda: pressed in self.answers)
        modal = self.answers[pressed]
        assert modal["type"] == 9, modal
        custom = modal["data"]["custom_id"]
        inside = {"type": 4, "custom_id": "text", "value": text}
        data = {"custom_id": custom, "components": [{"type": 18, "component": inside}]}
        return await self.interact(5, message["channel_id"], user, data, message=message)

    # ---- how things go wrong -------------------------------------------------------------
    def fail(self, name: str, status: int, times: int = 1, *, done: bool = False, **body: Any):
        """The next calls of `name` answer `status`; carried out all the same if `done`."""
        self._faults[name].append(Fault(status, times, {"message": "no", "code": 0} | body, done))

    def drop(self, name: str, times: int = 1) -> None:
        """The next calls are carried out, then the connection breaks unanswered."""
        self._faults[name].append(Fault(0, times, {}, True))

    def hold(self, name: str) -> None:
        self._gates[name] = asyncio.Event()

    def hold_answers(self, name: str) -> None:
        """Calls are carried out; who called does not hear of it until the release."""
        self.hold(name)
        self._silent.add(name)

    def release(self, name: str) -> None:
        self._silent.discard(name)
        self._gates.pop(name).set()

    def excuse(self) -> None:
        """The bot is not there in time for what was asked until now."""
        self._asked = {number: (token, inf) for number, (token, _) in self._asked.items()}

    def forget(self, name: str) -> None:
        """Calls that are held never happened."""
        self._never |= {id(call) for call in self.made(name)}
        self.release(name)

    # ---- looking -------------------------------------------------------------------------
    async def wait(self, met: Callable[[], object], timeout: float = PATIENCE) -> None:
        """Until `met`."""
        await wait_until(met, lambda: self.gateway.changed, timeout)

    async def shows(self, channel: str, words: str) -> Json:
        """The newest message of the bot that shows `words`, once there is one."""

        def found() -> list[Json]:
            return [one for one in self.chats[channel] if words in text_of(one)]

        try:
            await self.wait(found)
        except TimeoutError:
            shown = [text_of(one) for one in self.chats[channel]]
            raise AssertionError(f"{words!r} is not in {shown}") from None
        return found()[-1]

    async def told(self, interaction: str) -> str:
        """The first word that only who pressed sees."""
        await self.wait(lambda: self.whispers.get(interaction))
        return self.whispers[interaction][0]

    def made(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    # ---- serving -------------------------------------------------------------------------
    def _served(self, name: str) -> Callable[[web.Request], Any]:
        async def serve(request: web.Request) -> web.StreamResponse:
            return await self._serve(name, request)

        return serve

    async def _nowhere(self, request: web.Request) -> web.Response:
        self.violations.append(f"{request.method} {request.path}: no such route")
        return self._json({"message": "404: Not Found", "code": 0}, 404)

    async def _serve(self, name: str, request: web.Request) -> web.StreamResponse:
        params, files = await _read(request)
        call = Call(name, request.path, params, files, time.monotonic(), query=request.query)
        self.calls.append(call)
        self.violations += find_marks(params)
        self.gateway.note()
        gate = self._gates.get(name)
        if gate and name not in self._silent:
            await gate.wait()
        if id(call) in self._never:
            return web.Response()
        headers: dict[str, str] = {}
        try:
            body = self._handle(call, request, headers)
        except Refusal as refusal:
            call.status, body = refusal.status, refusal.body
        finally:
            self.gateway.note()
        if gate:
            await gate.wait()
        if call.status == 0:
            if request.transport:
                request.transport.abort()
            return web.Response()
        if isinstance(events := body.pop("!", None) if isinstance(body, dict) else None, tuple):
            await self.gateway.dispatch(*events)
        if call.status == 204:
            return web.Response(status=204, headers=headers)
        return self._json(body, call.status, headers)

    def _handle(self, call: Call, request: web.Request, headers: dict[str, str]) -> Any:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise Refusal(401, "401: Unauthorized")
        if not request.headers.get("User-Agent", "").startswith("DiscordBot ("):
            self.violations.append("no User-Agent of a bot")
        self._count(call, headers)
        fault = next(iter(self._faults[call.name]), None)
        if fault:
            fault.times -= 1
            if not fault.times:
                self._faults[call.name].pop(0)
            if not fault.done:
                call.status = fault.status
                return fault.body
        call.status = 200
        try:
            self.rights.check(call.name, request.match_info.get("channel", ""))
            result = getattr(self, f"_on_{call.name}")(call, **request.match_info)
        except Barred as barred:
            raise Refusal(*barred.args) from None
        if fault:
            call.status, result = fault.status, fault.body
        return result

    def _count(self, call: Call, headers: dict[str, str]) -> None:
        now, bucket = time.monotonic(), f"{call.name} {call.path}"
        most, seconds = self.limits.get(call.name, (1_000, 1.0))
        left = self._room(bucket, most, seconds, now)
        headers |= {
            "X-RateLimit-Limit": str(most), "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": call.name, "X-RateLimit-Reset": f"{time.time() + left:.3f}",
            "X-RateLimit-Remaining": str(max(0, most - len(self._buckets[bucket]) - 1)),
        }  # fmt: skip
        self._take(bucket, most, left, now, everywhere=False)
        if self.most_a_second and call.name not in ("answer", "whisper", "take_back"):
            left = self._room("", self.most_a_second, 1.0, now)
            self._take("", self.most_a_second, left, now, everywhere=True)

    def _room(self, bucket: str, most: int, seconds: float, now: float) -> float:
        """Seconds until the bucket has room again, where it has none."""
        times = self._buckets[bucket]
        times[:] = [at for at in times if now - at < seconds]
        return max(0.0, (times[0] + seconds - now) if times else seconds)

    def _take(self, bucket: str, most: int, left: float, now: float, *, everywhere: bool) -> None:
        if len(self._buckets[bucket]) < most:
            self._buckets[bucket].append(now)
            return
        told, until = self._told.get(bucket, (0.0, 0.0))
        if told + UNDER_WAY < now < until - 0.01:
            self.early.append(bucket or "everywhere")
        if now > until:
            self._told[bucket] = now, now + left
        more = {"global": everywhere}
        raise Refusal(429, "You are being rate limited.", retry_after=left, **more)

    async def _file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    @staticmethod
    def _json(body: Any, status: int, headers: dict[str, str] | None = None) -> web.Response:
        answer = web.Response(text=json.dumps(body), status=status, headers=headers)
        answer.headers["Content-Type"] = "application/json"
        return answer

    # ---- routes --------------------------------------------------------------------------
    def _on_me(self, _call: Call) -> Json:
        return self.user

    def _on_guild_roles(self, _call: Call, guild: str) -> list[Json]:
        return self.rights.tell_roles()

    def _on_guild_channels(self, _call: Call, guild: str) -> list[Json]:
        return self.rights.tell_channels()

    def _on_member(self, _call: Call, guild: str, person: str) -> Json:
        if person == self.user["id"]:
            return self.rights.tell_member()
        if int(person) in self.left:
            raise Refusal(404, "Unknown Member", 10007)
        return {"user": {"id": person}, "roles": self.roles.get(int(person), [])}

    def _on_unarchive(self, call: Call, channel: str) -> Json:
        assert call.params == {"archived": False}, call.params
        if self.rights.put_away.pop(channel, False):
            self.rights.put_away[channel] = True
            raise Refusal(403, "Missing Permissions", 50013)
        return {"id": channel}

    def _on_person(self, _call: Call, person: str) -> Json:
        return {"id": person, "username": f"u{person}", "global_name": None}

    def _on_channel(self, _call: Call, channel: str) -> Json:
        if channel in self.threads:
            return {
                "id": channel,
                "type": 11,
                "guild_id": GUILD,
                "parent_id": self.threads[channel],
            }
        self._must_be(channel)
        return self.rights.tell_channel(channel)

    def _must_be(self, channel: str) -> None:
        """A message's id is a channel's only once a thread was made from it."""
        if channel in {*self._said, *self._gone} and channel not in self.threads:
            raise Refusal(404, "Unknown Channel", 10003)

    def _on_open(self, call: Call, channel: str, message: str) -> Json:
        self.violations += fields(call.params, THREAD, "thread")
        self._find(channel, message)
        if not self.threads_allowed:
            raise Refusal(403, "Missing Permissions", 50013)
        if message in self.threads:
            raise Refusal(400, "A thread has already been created for this message", 160004)
        self.threads[message], self.titles[message] = channel, call.params["name"]
        call.status = 201
        made = {"id": message, "type": 11, "parent_id": channel, "name": call.params["name"]}
        return made | {"guild_id": GUILD, "!": ("THREAD_CREATE", dict(made))}

    def _on_history(self, call: Call, channel: str) -> list[Json]:
        """What was said after a message, or before one, newest first; where it was said is not
        told."""
        self._must_be(channel)
        after, limit = int(call.query.get("after", 0)), int(call.query["limit"])
        before = int(call.query.get("before", 0))
        said = [one for one in self._said.values() if one["channel_id"] == channel]
        found = [one for one in [*said, *self.chats[channel]] if int(one["id"]) > after]
        found = sorted(found, key=lambda one: int(one["id"]))
        if before:
            found = [one for one in found if int(one["id"]) < before][-limit:]
        else:
            found = found[:limit]
        session = list(self.gateway.sessions.values())[-1]
        shown = [self.gateway.allowed(session, "MESSAGE", one) for one in found]
        hidden = ("guild_id", "member")
        return [{k: v for k, v in one.items() if k not in hidden} for one in shown[::-1]]

    def _on_send(self, call: Call, channel: str) -> Json:
        self.violations += check_message(call.params, list(call.files), new=True)
        self._must_be(channel)
        nonce = (channel, call.params["nonce"])
        if call.params.get("enforce_nonce") and nonce in self._nonces:
            return dict(self._nonces[nonce])
        message: Json = {
            "id": self.new_id(), "type": 0, "content": "", "author": self.user, "edits": 0,
            "mentions": [], "components": call.params["components"], "flags": call.params["flags"],
            "message_reference": self._refer(call.params.get("message_reference")),
        } | self.place(channel)  # fmt: skip
        self._nonces[nonce] = message
        self.chats[channel].append(message)
        self.uploads[message["id"]] = call.files
        return message | {"!": ("MESSAGE_CREATE", dict(message))}

    def _refer(self, replied: Json | None) -> Json | None:
        """What a reply refers to; a reply to a message that is gone is no reply."""
        gone = replied is not None and str(replied["message_id"]) in self._gone
        return None if gone else replied

    def _on_edit(self, call: Call, channel: str, message: str) -> Json:
        self.violations += check_message(call.params, list(call.files), new=False)
        found = self._find(channel, message)
        found |= {"components": call.params["components"], "edits": found["edits"] + 1}
        self.uploads[message] = call.files
        return found | {"!": ("MESSAGE_UPDATE", found | {"edited_timestamp": "2026-01-01"})}

    def _on_remove(self, call: Call, channel: str, message: str) -> Json:
        self.chats[channel].remove(self._find(channel, message))
        self._gone.add(message)
        call.status = 204
        return {"!": ("MESSAGE_DELETE", {"id": message} | self.place(channel))}

    def _on_look(self, _call: Call, channel: str, message: str) -> Json:
        found = self._find(channel, message)
        return found | ({"thread": {"id": message}} if message in self.threads else {})

    def _on_type(self, call: Call, channel: str) -> Json:
        self.typing.append(channel)
        call.status = 204
        return {}

    def _on_react(self, call: Call, channel: str, message: str, emoji: str) -> Json:
        self._find(channel, message)
        self.reactions[message].append(emoji)
        self.reacted[message].append(emoji)
        call.status = 204
        return {}

    def _on_unreact(self, call: Call, channel: str, message: str, emoji: str) -> Json:
        self._find(channel, message)
        if emoji not in self.reactions[message]:
            raise Refusal(404, "Unknown Emoji", 10014)
        self.reactions[message].remove(emoji)
        call.status = 204
        return {}

    def _on_answer(self, call: Call, number: str, token: str) -> Json:
        self.violations += check_answer(call.params)
        if number in self.answers:
            raise Refusal(400, "Interaction has already been acknowledged.", 40060)
        known, at = self._asked.pop(number, ("", 0.0))
        if known != token:
            raise Refusal(404, "Unknown interaction", 10062)
        self.delays.append(time.monotonic() - at)
        if time.monotonic() - at > PROMPT:
            self.violations.append(f"interaction {number} answered too late")
        self.answers[number] = call.params
        if call.params["type"] == 4:
            self.whispers[number].append(call.params["data"]["content"])
        call.status = 204
        return {}

    def _on_whisper(self, call: Call, application: str, token: str) -> Json:
        self.violations += fields(call.params, WHISPER, "whisper")
        number = token.removeprefix("token-")
        if application != APPLICATION or number not in self.answers:
            raise Refusal(404, "Unknown Webhook", 10015)
        self.whispers[number].append(call.params["content"])
        return {"id": self.new_id()}

    def _on_take_back(self, call: Call, application: str, token: str) -> Json:
        """The first answer to an interaction goes."""
        number = token.removeprefix("token-")
        if application != APPLICATION or number not in self.answers:
            raise Refusal(404, "Unknown Webhook", 10015)
        if not self.whispers[number]:
            raise Refusal(404, "Unknown Message", 10008)
        del self.whispers[number][0]
        call.status = 204
        return {}

    def _on_menu(self, call: Call, application: str) -> list[Json]:
        if application != APPLICATION:
            raise Refusal(403, "Missing Access", 50001)
        self.violations += check_commands(call.params)
        known = {one["name"]: one["id"] for one in self.commands}
        self.commands = [
            one | {"id": known.get(one["name"], str(7_000 + n))}
            for n, one in enumerate(call.params)
        ]
        return self.commands

    def _find(self, channel: str, message: str) -> Json:
        for one in self.chats[channel]:
            if one["id"] == message:
                return one
        said = self._said.get(message)
        if said is not None and said.get("channel_id", channel) == channel:
            return said
        raise Refusal(404, "Unknown Message", 10008)


async def _read(request: web.Request) -> tuple[Any, dict[str, bytes]]:
    if request.content_type == "multipart/form-data":
        params, files = None, {}
        async for part in await request.multipart():
            data = bytes(await part.read())
            if part.name == "payload_json":
                params = json.loads(data)
            else:
                files[part.filename] = data
        return params, files
    body = await request.read()
    return (json.loads(body) if body else None), {}


def text_of(message: Json) -> str:
    """What one reads in a message of the bot, in UTC."""
    text = "\n".join(one["content"] for one in walk(message["components"]) if one["type"] == 10)
    return show_times(text)


OWN_TIME = re.compile(r"<t:(\d+):f>")


def show_times(text: str) -> str:
    """`text` with its times as a client in UTC has them."""
    return OWN_TIME.sub(_show_time, text)


def _show_time(found: "re.Match[str]") -> str:
    return f"{datetime.fromtimestamp(int(found[1]), UTC):%Y-%m-%d %H:%M} UTC"


def labels(message: Json) -> list[str]:
    """The words on a message's buttons and in its lists."""
    whole = list(walk(message["components"]))
    options = [option["label"] for one in whole for option in one.get("options", ())]
    return [one["label"] for one in whole if one["type"] == 2] + options
