"""Discord as the emulator simcord has it, behind our own sockets: its rules for each call, and its
events by the gateway. simcord itself replaces discord.py's transports inside one process; what is
used here is the world behind them, so that our transports are the ones that are tried."""

import asyncio
import json
from typing import Any

from aiohttp import web
from simcord.backend import Backend, serializers
from simcord.backend.errors import BackendError
from simcord.http import router
from simcord.interactions import base_payload

from tests.fakes.discord_server import Call, DiscordServer, Json, Refusal, text_of, walk

HEARD = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "THREAD_CREATE")


class Simcord(DiscordServer):
    """One server with a channel, and people in it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.world = Backend()
        self.world.subscribers.append(self._heard)
        self.user["id"] = str(self.world.bot_user.id)
        self.gateway.application["id"] = str(self.world.application_id)
        self.guild = self.world.create_guild("Team").id
        self.world.add_member(self.guild, self.world.bot_user.id)
        self.channel = self.world.create_channel(self.guild, "general").id
        self._events: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()

    def join(self, name: str) -> int:
        """A person comes into the server; their id."""
        person = self.world.make_user(name, global_name=name).id
        self.world.add_member(self.guild, person)
        return person

    async def start(self) -> str:
        self._pump = asyncio.create_task(self._deliver())
        return await super().start()

    async def __aexit__(self, *error: object) -> None:
        self._pump.cancel()
        await asyncio.wait([self._pump])
        await super().__aexit__(*error)

    # ---- what people do ------------------------------------------------------------------

    def write(self, person: int, text: str, channel: int = 0) -> int:
        """A person writes; the message's id. `@bot` mentions it."""
        text = text.replace("@bot", f"<@{self.user['id']}>")
        return self.world.create_message(channel or self.channel, person, text).id

    async def push(self, person: int, message: Json, label: str) -> None:
        """A person presses a button."""
        button = next(one for one in walk(message["components"]) if one.get("label") == label)
        data = {"custom_id": button["custom_id"], "component_type": 2}
        record, event = base_payload(
            self.world, type=3, channel_id=int(message["channel_id"]), guild_id=self.guild,
            user_id=person, data=data,
        )  # fmt: skip
        record.message_id = int(message["id"])
        self._events.put_nowait(("INTERACTION_CREATE", event | {"message": message}))

    # ---- looking -------------------------------------------------------------------------

    def stands(self, channel: int, words: str) -> Json | None:
        """The newest message of the bot in a channel that shows `words`."""
        found = [
            serializers.message_payload(self.world, one)
            for one in self.world.messages.get(channel, {}).values()
            if one.author_id == self.world.bot_user.id
        ]
        shown = [json.loads(json.dumps(one)) for one in found]
        return next((one for one in reversed(shown) if words in text_of(one)), None)

    async def comes(self, channel: int, words: str) -> Json:
        await self.wait(lambda: self.stands(channel, words))
        found = self.stands(channel, words)
        assert found is not None
        return found

    # ---- serving -------------------------------------------------------------------------

    def _heard(self, event: str, payload: Any) -> None:
        if event in HEARD:
            self._events.put_nowait((event, json.loads(json.dumps(payload))))

    async def _deliver(self) -> None:
        while True:
            await self.gateway.dispatch(*await self._events.get())

    def _handle(self, call: Call, request: web.Request, headers: dict[str, str]) -> Any:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise Refusal(401, "401: Unauthorized")
        path = request.path.removeprefix("/api/v10")
        try:
            answer = router.dispatch(
                self.world, request.method, path, json=call.params, params=dict(request.query)
            )
        except (router.RouteNotImplemented, router.UnsupportedField) as gap:
            self.violations.append(f"{call.name}: {gap}")
            raise Refusal(501, str(gap)) from None
        except BackendError as error:
            if error.status == 400:
                self.violations.append(f"{call.name}: {error.to_json()}")
            raise Refusal(error.status, error.message, error.code) from None
        call.status = 204 if answer is None else 200
        return json.loads(json.dumps(answer)) if answer is not None else {}
