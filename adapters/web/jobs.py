"""Jobs and runs in the HTTP API: to read, to run, pause, resume, edit and delete."""

from aiohttp import web
from msgspec import Struct

from adapters.web.api import Handler, guard, identify
from adapters.web.gate import RequestGate, RequestRefused
from adapters.web.wire import Keyed, answer, body_of
from adapters.web.words import choose_language
from gateway.messages import Sender
from gateway.ports import JobBackend
from gateway.shown_jobs import ShownJob, ShownRun

NONE = "There is no such job of yours. GET /api/jobs lists them."


class JobList(Struct, frozen=True, kw_only=True):
    """All jobs that the visitor may manage."""

    jobs: tuple[ShownJob, ...]


class Runs(Struct, frozen=True, kw_only=True):
    """A job's runs, the newest first."""

    runs: tuple[ShownRun, ...]


class DoneAnswer(Struct, frozen=True, kw_only=True):
    """Success; `key` is the one given or a new one."""

    done: bool
    key: str


class JobEdit(Keyed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changed fields of a job; others stay. A `model`, `profile` or `tools` that is "" becomes
    the conversation's again."""

    title: str | None = None
    schedule: str | None = None
    zone: str | None = None
    model: str | None = None
    profile: str | None = None
    tools: str | None = None
    prompt: str | None = None


def job_routes(backend: JobBackend, gate: RequestGate) -> list[web.AbstractRouteDef]:
    """The routes under /api/jobs."""

    async def enter(request: web.Request) -> Sender:
        person = (await identify(gate, request)).person
        language = choose_language(request.headers.get("Accept-Language", ""))
        sender = Sender(platform="web", id=person, name=person, language=language)
        role = await backend.role(sender)
        if role is None or (role == "viewer" and request.method not in ("GET", "HEAD")):
            raise RequestRefused(403, f"{person} may not do this here. Ask an admin for more.")
        return sender

    async def list_jobs(request: web.Request) -> web.StreamResponse:
        return answer(JobList(jobs=await backend.jobs(await enter(request))))

    async def ran(request: web.Request) -> web.StreamResponse:
        runs = await backend.runs(await enter(request), request.match_info["id"])
        if runs is None:
            raise RequestRefused(404, NONE)
        return answer(Runs(runs=runs))

    async def act(request: web.Request) -> web.StreamResponse:
        sender, action = await enter(request), request.match_info["action"]
        _, key = await body_of(request, Keyed)
        done = await backend.act(sender, request.match_info["id"], action, key)
        if done is None:
            raise RequestRefused(404, NONE)
        if not done:
            raise RequestRefused(
                409, "Nothing was changed: the job runs or is so already, or stands in jobs.toml."
            )
        return answer(DoneAnswer(done=True, key=key))

    async def edit(request: web.Request) -> web.StreamResponse:
        sender = await enter(request)
        body, key = await body_of(request, JobEdit)
        given = {name: getattr(body, name) for name in JobEdit.__struct_fields__ if name != "key"}
        fields = {name: value for name, value in given.items() if value is not None}
        why = await backend.edit(sender, request.match_info["id"], fields)
        if why is None:
            raise RequestRefused(404, NONE)
        if why:
            raise RequestRefused(400, why)
        return answer(DoneAnswer(done=True, key=key))

    handlers: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/api/jobs", list_jobs),
        ("GET", "/api/jobs/{id}/runs", ran),
        ("POST", "/api/jobs/{id}/edit", edit),
        ("POST", "/api/jobs/{id}/{action:run|pause|resume|delete}", act),
    )
    return [web.route(way, path, guard(gate, call)) for way, path, call in handlers]
