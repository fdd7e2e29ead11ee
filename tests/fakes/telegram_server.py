"""A Bot API server on loopback: what the real one does with our calls, and the ways it fails."""

import asyncio
import itertools
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from aiohttp import ClientSession, web

from tests.fakes.marks import find_marks
from tests.fakes.telegram_limits import Limits
from tests.fakes.telegram_schema import check
from tests.fakes.telegram_wire import Call, Fault, File, Json, Refusal, content, read_call
from tests.fakes.waiting import PATIENCE, wait_until

OLD_PRESS = "query is too old and response timeout expired or query ID is invalid"
OTHER_POLL = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
HOOKED = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


@dataclass
class TelegramServer:
    """One bot's server. `chats` holds what the bot's messages show now; `edits` counts."""

    token: str = "123456:TEST"
    username: str = "test_bot"
    chats: dict[int, list[Json]] = field(default_factory=lambda: defaultdict(list))
    calls: list[Call] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    answers: list[Json] = field(default_factory=list)
    drafts: dict[int, list[Json]] = field(default_factory=lambda: defaultdict(list))
    reactions: dict[tuple[int, int], list[Json]] = field(default_factory=dict)
    reacted: dict[tuple[int, int], list[Json]] = field(default_factory=dict)
    """The newest reaction to a message, also where the bot took it back."""
    replies: dict[int, int] = field(default_factory=dict)
    """The bot's messages that reply to one, by its number."""
    working: list[int] = field(default_factory=list)
    unreactive: set[int] = field(default_factory=set)
    """Chats in which reactions are not allowed."""
    """The chats where the bot was seen typing."""
    menus: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    """(scope, language) -> commands; a chat's scope is its number."""
    uploads: dict[int, list[File]] = field(default_factory=dict)
    """message -> its files."""
    rich: bool = True
    """Knows rich messages (Bot API 10.2)."""
    bad_photos: set[str] = field(default_factory=set)
    """Names of pictures that cannot be shown as photos."""
    files: dict[str, bytes] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    refusing: dict[int, str] = field(default_factory=dict)
    """Chats that take no message, and why."""
    closed: set[tuple[int, int]] = field(default_factory=set)
    """Topics, as (chat, thread), in which nobody may write."""
    names: dict[int, str] = field(default_factory=dict)
    """user -> the name that they gave themselves."""
    languages: dict[int, str] = field(default_factory=dict)
    """user -> the language of their app, English if it is not here."""
    migrated: dict[int, int] = field(default_factory=dict)
    flood: dict[int, float] = field(default_factory=dict)
    """chat -> least seconds between two of its messages or edits."""
    limits: Limits | None = None
    """All of Telegram's limits; without them only `flood` counts."""
    holds_polls: bool = True
    """Keeps a poll open until there is something to tell."""
    confirms: bool = True
    """Drops updates before the offset of a poll."""
    webhook: Json | None = None
    unreached: str = ""
    """Why the webhook cannot be reached; updates wait."""
    old_presses: set[str] = field(default_factory=set)
    base_url: str = ""

    def __post_init__(self) -> None:
        self.bot = {"id": int(self.token.split(":")[0]), "is_bot": True, "first_name": "Test"}
        self.bot["username"] = self.username
        self._numbers, self._updates = itertools.count(1), itertools.count(1000)
        self._queue: deque[Json] = deque()
        self._said: dict[tuple[int, int], Json] = {}
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self._gates: dict[str, asyncio.Event] = {}
        self._silent: set[str] = set()
        self._last: dict[int, float] = {}
        self._changed = asyncio.Event()
        self._poller = 0
        self._pushing: asyncio.Task[None] | None = None

    # ---- life ----------------------------------------------------------------------------
    async def start(self) -> str:
        """Its base URL."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{path:.*}", self._file)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self.base_url

    async def stop(self) -> None:
        if self._pushing:
            self._pushing.cancel()
        for gate in self._gates.values():
            gate.set()
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    # ---- what people do ------------------------------------------------------------------
    def say(
        self,
        chat: int,
        text: str,
        user: int = 0,
        group: bool = False,
        reply_to: int = 0,
        thread: int = 0,
        **extra: object,
    ) -> Json:
        """A person writes; the update."""
        message = self._message(chat, user, group, thread) | {"text": text} | extra
        if text.startswith("/"):
            length = len(text.split()[0])
            message["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
        if reply_to:
            message["reply_to_message"] = self._find(chat, reply_to)
        self._said[chat, message["message_id"]] = message
        return self.push({"message": message})

    def edit(self, chat: int, message_id: int, text: str, **extra: object) -> Json:
        """A person edits their message."""
        message = self._said[chat, message_id]
        for n, update in enumerate(self._queue):  # what is on its way stays as it was
            if update.get("message") is message:
                self._queue[n] = update | {"message": dict(message)}
        message |= {"text": text, "edit_date": int(time.time())} | extra
        return self.push({"edited_message": dict(message)})

    def press(
        self, chat: int, message_id: int, data: str, user: int = 0, *, old: bool = False
    ) -> Json:
        """A person presses a button of a message, which need not be there any more. `old`: the
        platform tells nothing of it any more but its number."""
        unknown = {"chat": self._chat(chat, chat < 0), "message_id": message_id, "date": 0}
        try:
            message = unknown if old else self._find(chat, message_id)
        except Refusal:
            message = unknown
        who = self._user(user or abs(chat))
        query = {"from": who, "chat_instance": "1", "data": data, "message": message}
        return self.push({"callback_query": {"id": f"press{next(self._numbers)}"} | query})

    def person(self, user: int) -> Json:
        """Somebody, as they stand in updates."""
        return self._user(user)

    def tell(self, chat: int, service: Json, thread: int = 0) -> Json:
        """A message of the platform itself: somebody joined, the title changed."""
        return self.push({"message": self._message(chat, 0, chat < 0, thread) | service})

    def put_out(self, chat: int, status: str, kind: str = "supergroup", **rights: bool) -> Json:
        """The bot is told what it is in a chat now."""
        bot = {"id": 42, "is_bot": True, "first_name": "bot"}
        member = {"chat": {"id": chat, "type": kind}, "from": self._user(12), "date": 5,
                  "old_chat_member": {"status": "member", "user": bot},
                  "new_chat_member": {"status": status, "user": bot} | rights}  # fmt: skip
        return self.push({"my_chat_member": member})

    def push(self, update: Json) -> Json:
        """Any update, which gets its number."""
        return self.redeliver({"update_id": next(self._updates)} | update)

    def redeliver(self, update: Json) -> Json:
        """The same update again."""
        self._queue.append(update)
        self._note()
        self._begin_push()
        return update

    def reach(self) -> None:
        """The webhook can be reached from now on."""
        self.unreached = ""
        self._begin_push()

    def _begin_push(self) -> None:
        over = self._pushing is None or self._pushing.done()
        if self.webhook and not self.unreached and over:
            self._pushing = asyncio.create_task(self._push())

    # ---- how things go wrong -------------------------------------------------------------
    def fail(
        self,
        method: str,
        status: int,
        retry_after: float | None = None,
        times: int = 1,
        after_effect: bool = False,
        description: str = "",
    ) -> None:
        """The next `times` calls answer `status`; the call is carried out if `after_effect`."""
        body: Json = {"ok": False, "error_code": status, "description": description or f"E{status}"}
        if retry_after is not None:
            body["parameters"] = {"retry_after": retry_after}
        self._faults[method].append(Fault(status, times, body, after_effect))

    def drop(self, method: str, times: int = 1) -> None:
        """The next `times` calls are carried out, then the connection closes unanswered."""
        self._faults[method].append(Fault(0, times, {}, True))

    def hold(self, method: str) -> None:
        """Calls of `method` are left waiting until `release`."""
        self._gates[method] = asyncio.Event()

    def hold_answers(self, method: str) -> None:
        """Calls are carried out; who called does not hear of it until the release."""
        self.hold(method)
        self._silent.add(method)

    def release(self, method: str) -> None:
        self._silent.discard(method)
        self._gates.pop(method).set()

    # ---- waiting -------------------------------------------------------------------------
    async def wait(self, met: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Until `met`."""
        await wait_until(met, lambda: self._changed, timeout)

    async def wait_text(self, chat: int, substring: str, timeout: float = PATIENCE) -> Json:
        """The newest message of `chat` that shows `substring`, once there is one."""

        def shown() -> list[Json]:
            return [m for m in self.chats.get(chat, []) if substring in m["text"]]

        await self.wait(lambda: bool(shown()), timeout)
        return shown()[-1]

    async def wait_calls(self, method: str, n: int = 1, timeout: float = PATIENCE) -> list[Call]:
        """The calls of `method` once there are `n`, held ones too."""
        await self.wait(lambda: len(self.made(method)) >= n, timeout)
        return self.made(method)

    @property
    def commands(self) -> list[Json]:
        """The menu that most people see in a private chat."""
        return self.menus.get(("all_private_chats", ""), [])

    def file_of(self, message: Json) -> File | None:
        """What a message of the bot bears."""
        return next(iter(self.uploads.get(message["message_id"], ())), None)

    def made(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    # ---- serving -------------------------------------------------------------------------
    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        call = await read_call(request, time.monotonic())
        self.calls.append(call)
        self._note()
        gate, silent = self._gates.get(method), method in self._silent
        if gate and not silent:
            await gate.wait()
        try:
            body = await self._answer(call, request.match_info["token"])
        except Refusal as refusal:
            call.status, body = refusal.status, refusal.body
        finally:
            self._note()
        if gate and silent:
            await gate.wait()
        if call.status == 0:
            if request.transport:
                request.transport.abort()
            return web.Response()
        return web.json_response(body, status=call.status)

    async def _answer(self, call: Call, token: str) -> Json:
        fault = next(iter(self._faults[call.method]), None)
        if fault:
            fault.times -= 1
            if not fault.times:
                self._faults[call.method].pop(0)
        if token != self.token:
            raise Refusal(401, "Unauthorized")
        handler = getattr(self, f"_on_{call.method.lower()}", None)
        if handler is None or (call.method == "sendRichMessage" and not self.rich):
            raise Refusal(404, "Not Found: method not found")
        self.violations += check(call.method, call.whole) + find_marks(call.whole)
        self._pace(call)
        call.status = 200
        if fault and not fault.after_effect:
            call.status = fault.status
            return fault.body
        result = handler(call if call.files else call.params)
        body = {"ok": True, "result": await result if asyncio.iscoroutine(result) else result}
        if fault:
            call.status, body = fault.status, fault.body
        return body

    async def _file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["path"].removeprefix("files/"))
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _push(self) -> None:
        async with ClientSession() as session:
            while self._queue and self.webhook:
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", "")}
                sent = session.post(self.webhook["url"], json=self._queue[0], headers=headers)
                async with sent as answer:
                    if answer.status < 300:
                        self._queue.popleft()
                        continue
                await asyncio.sleep(0.02)

    # ---- methods -------------------------------------------------------------------------
    def _on_getme(self, _p: Json) -> Json:
        return self.bot

    async def _on_getupdates(self, p: Json) -> list[Json]:
        if self.webhook:
            raise Refusal(409, HOOKED)
        self._poller += 1
        me, offset = self._poller, p.get("offset", 0)
        self._note()
        while self.confirms and offset > 0 and self._queue and self._queue[0]["update_id"] < offset:
            self._queue.popleft()
        allowed, end = p.get("allowed_updates") or [], time.monotonic()
        end += p.get("timeout", 0) if self.holds_polls else 0
        while True:
            if me != self._poller:
                raise Refusal(409, OTHER_POLL)
            out = [u for u in self._queue if not allowed or any(kind in u for kind in allowed)]
            left = end - time.monotonic()
            if out or left <= 0:
                return out[: p.get("limit", 100)]
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue

    def _on_getchat(self, p: Json) -> Json:
        known = self.chats.get(int(p["chat_id"]))
        if not known:
            raise Refusal(400, "Bad Request: chat not found")
        return {"id": int(p["chat_id"]), "type": "private", "first_name": f"U{p['chat_id']}"}

    def _on_setwebhook(self, p: Json) -> bool:
        self.webhook = p if p.get("url") else None
        return True

    def _on_deletewebhook(self, p: Json) -> bool:
        self.webhook = None
        if p.get("drop_pending_updates"):
            self._queue.clear()
        return True

    def _on_getwebhookinfo(self, _p: Json) -> Json:
        url = (self.webhook or {}).get("url", "")
        pending = len(self._queue)
        info = {"url": url, "has_custom_certificate": False, "pending_update_count": pending}
        failed = {"last_error_date": int(time.time()), "last_error_message": self.unreached}
        return info | (failed if self.unreached else {})

    def _on_setmycommands(self, p: Json) -> bool:
        scope = p.get("scope", {})
        name = str(scope.get("chat_id", scope.get("type", "default")))
        self.menus[name, p.get("language_code", "")] = p["commands"]
        return True

    def _on_sendmessage(self, p: Json) -> Json:
        return self._put(p, content(p))

    def _on_sendrichmessage(self, p: Json) -> Json:
        return self._put(p, content(p))

    def _on_sendphoto(self, call: Call) -> Json:
        return self._put_files(call, "photo", call.files["photo"], call.params)

    def _on_senddocument(self, call: Call) -> Json:
        return self._put_files(call, "document", call.files["document"], call.params)

    def _on_sendmediagroup(self, call: Call) -> list[Json]:
        album = str(next(self._numbers))
        sent = []
        for medium in call.params["media"]:
            file = call.files[medium["media"].removeprefix("attach://")]
            sent.append(self._put_files(call, medium["type"], file, medium))
            sent[-1]["media_group_id"] = album
        return sent

    def _put_files(self, call: Call, kind: str, file: File, about: Json) -> Json:
        if kind == "photo" and file.name in self.bad_photos:
            raise Refusal(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
        message = self._put(call.params, {"text": about.get("caption", ""), "shows": kind})
        self.uploads[message["message_id"]] = [file]
        return message

    def _on_editmessagecaption(self, p: Json) -> Json:
        message = next(m for m in self.chats[p["chat_id"]] if m["message_id"] == p["message_id"])
        if "shows" not in message:
            raise Refusal(400, "Bad Request: there is no caption in the message to edit")
        message |= {"text": p.get("caption", ""), "edits": message["edits"] + 1}
        return message

    def _put(self, p: Json, shown: Json) -> Json:
        chat = self._open_chat(p)
        message: Json = {
            "message_id": next(self._numbers),
            "from": self.bot,
            "date": int(time.time()),
            "chat": self._chat(chat, chat < 0),
            "edits": 0,
        } | shown
        if thread := p.get("message_thread_id"):
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if replied := p.get("reply_parameters"):
            try:
                known = self._find(chat, replied["message_id"])
            except Refusal:
                if not replied.get("allow_sending_without_reply"):
                    raise
            else:
                self.replies[message["message_id"]] = known["message_id"]
        self.chats[chat].append(message)
        self.drafts.pop(chat, None)
        return message

    def _on_deletemessage(self, p: Json) -> bool:
        chat = self._open_chat(p)
        try:
            message = self._find(chat, p["message_id"])
        except Refusal:
            raise Refusal(400, "Bad Request: message to delete not found") from None
        self.chats[chat].remove(message)
        return True

    def _on_editmessagetext(self, p: Json) -> Json:
        chat = self._open_chat(p)
        found = [m for m in self.chats[chat] if m["message_id"] == p.get("message_id")]
        if not found:
            raise Refusal(400, "Bad Request: message to edit not found")
        if not self.rich:
            p = {name: value for name, value in p.items() if name != "rich_message"}
        message, shown = found[0], content(p)
        if "shows" in message:
            raise Refusal(400, "Bad Request: there is no text in the message to edit")
        if "force_reply" in message.get("reply_markup", {}):
            raise Refusal(400, "Bad Request: message can't be edited")
        fields = ("text", "entities", "rich_message", "reply_markup")
        if shown == {k: message[k] for k in fields if k in message}:
            raise Refusal(
                400, "Bad Request: message is not modified: specified new message content"
            )
        for name in fields:
            message.pop(name, None)
        message |= shown
        message["edits"] += 1
        return message

    def _on_deletemessage(self, p: Json) -> bool:
        chat = self.chats[p["chat_id"]]
        chat[:] = [m for m in chat if m["message_id"] != p["message_id"]]
        return True

    def _on_sendmessagedraft(self, p: Json) -> bool:
        self.drafts[p["chat_id"]].append(p)
        return True

    def _on_sendchataction(self, p: Json) -> bool:
        self.working.append(p["chat_id"])
        return True

    def _on_setmessagereaction(self, p: Json) -> bool:
        self._find(p["chat_id"], p["message_id"])
        if p["chat_id"] in self.unreactive:
            raise Refusal(400, "Bad Request: REACTION_INVALID")
        where, reaction = (p["chat_id"], p["message_id"]), p.get("reaction", [])
        self.reactions[where] = reaction
        if reaction:
            self.reacted[where] = reaction
        return True

    def _on_answercallbackquery(self, p: Json) -> bool:
        if p["callback_query_id"] in self.old_presses:
            raise Refusal(400, f"Bad Request: {OLD_PRESS}")
        self.answers.append(p)
        return True

    def _on_getfile(self, p: Json) -> Json:
        name = p["file_id"]
        if name not in self.files:
            raise Refusal(400, "Bad Request: invalid file_id")
        size = len(self.files[name])
        if size > 20 << 20:
            raise Refusal(400, "Bad Request: file is too big")
        about = {"file_id": name, "file_unique_id": name, "file_size": size}
        return about | {"file_path": f"files/{name}"}

    # ---- details -------------------------------------------------------------------------
    def _pace(self, call: Call) -> None:
        """What is written into chats is limited; receipts and answers to presses are not."""
        if self.limits is None or not call.method.startswith(("sendM", "sendR", "sendD", "edit")):
            return
        edit = call.method.startswith("edit") or call.method.endswith("Draft")
        if wait := self.limits.ask(int(call.params["chat_id"]), edit=edit):
            text = f"Too Many Requests: retry after {wait}"
            raise Refusal(429, text, retry_after=wait)

    def _open_chat(self, p: Json) -> int:
        chat = int(p["chat_id"])
        if chat in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if chat in self.refusing:
            raise Refusal(400, f"Bad Request: {self.refusing[chat]}")
        if (chat, int(p.get("message_thread_id") or 0)) in self.closed:
            raise Refusal(400, "Bad Request: TOPIC_CLOSED")
        if moved := self.migrated.get(chat):
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise Refusal(400, text, migrate_to_chat_id=moved)
        now, pause = time.monotonic(), self.flood.get(chat, 0.0)
        if now - self._last.get(chat, float("-inf")) < pause:
            wait = max(1, round(pause))
            text = f"Too Many Requests: retry after {wait}"
            raise Refusal(429, text, retry_after=wait)
        self._last[chat] = now
        return chat

    def _find(self, chat: int, message_id: int) -> Json:
        for message in self.chats.get(chat, []):
            if message["message_id"] == message_id:
                return message
        if said := self._said.get((chat, message_id)):
            return said
        raise Refusal(400, "Bad Request: message not found")

    def _message(self, chat: int, user: int, group: bool, thread: int) -> Json:
        message = {
            "message_id": next(self._numbers),
            "from": self._user(user or abs(chat)),
            "chat": self._chat(chat, group or chat < 0),
            "date": int(time.time()),
        }
        return message | ({"message_thread_id": thread, "is_topic_message": True} if thread else {})

    def _user(self, user: int) -> Json:
        name = self.names.get(user, f"U{user}")
        names = {"first_name": name, "username": f"user{user}"}
        names["language_code"] = self.languages.get(user, "en")
        return {"id": user, "is_bot": False} | names

    @staticmethod
    def _chat(chat: int, group: bool) -> Json:
        if group:
            return {"id": chat, "type": "supergroup", "title": f"G{abs(chat)}"}
        return {"id": chat, "type": "private", "first_name": f"U{chat}"}

    def _note(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
