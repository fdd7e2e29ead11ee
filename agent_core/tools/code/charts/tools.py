"""visualization_preparation inspects a table and writes a chart's specification; data_visualization
draws it and sends the picture to people."""

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE

import msgspec
from msgspec.structs import asdict
from pydantic import BaseModel, Field

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools import backups, files, paths
from agent_core.tools.code.charts.chart import Chart, Drawing, Shape, make_drawing, propose_chart
from agent_core.tools.code.charts.table import Table, describe, parse
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.send import FileStore

MAX_BYTES = 30_000_000
"""Maximum bytes of a CSV file."""
LIMIT = 60.0
"""Seconds for one chart to be drawn."""
_NOT_THERE = (
    "Charts cannot be drawn here: matplotlib is missing. Whoever runs this installs the extra "
    "`charts` (pip install 'turnkeeper[charts]'). Until then give the numbers as a table."
)
_DRAW = Path(__file__).with_name("draw.py")


class PrepareChartArguments(BaseModel):
    """Arguments of visualization_preparation."""

    path: str = Field(description="A CSV file.")
    kind: Shape | None = None
    x: str = Field(default="", description="A column.")
    y: list[str] = Field(default=[], description="Columns of numbers.")
    title: str = ""


class VisualizeArguments(BaseModel):
    """Arguments of data_visualization."""

    path: str = Field(description="What visualization_preparation wrote.")
    caption: str = Field(default="", max_length=4_000)


def chart_tools(file_store: FileStore) -> tuple[Tool, ...]:
    """The two tools; pictures for people are copied to `file_store`."""

    async def draw(wanted: VisualizeArguments, context: ToolContext) -> ToolOutput:
        if find_spec("matplotlib") is None:
            raise ToolFailed(_NOT_THERE)
        drawn = await asyncio.to_thread(_load_drawing, wanted.path, context.workspace)
        data = await _draw_apart(drawn, context.workspace)
        to = f"{wanted.path.removesuffix('.json').removesuffix('.chart')}.png"
        await asyncio.to_thread(_put, to, data, context.workspace)
        given = await asyncio.to_thread(file_store.keep, context.workspace, to)
        said = f"Drawn and given to the person: {to} ({len(data):,} bytes)."
        return ToolOutput(text=said, files=(given,), caption=wanted.caption, changed=(to,))

    return (
        Tool(
            name="visualization_preparation",
            description="Look at a CSV file (columns, types, rows) and write what a chart of it "
            "shows, as JSON beside it. Without kind, x and y it proposes them.",
            summary="a chart, first: look at a CSV",
            arguments=PrepareChartArguments,
            repetition="idempotent",
            access="write",
            call=_prepare,
        ),
        Tool(
            name="data_visualization",
            description="Draw a chart that visualization_preparation wrote, as PNG, and give it to "
            "the person.",
            summary="a chart, then: draw it as PNG",
            arguments=VisualizeArguments,
            repetition="idempotent",
            access="write",
            call=draw,
            bind=_bind,
            preview=_preview,
            limit=LIMIT + 15.0,
        ),
    )


async def _prepare(wanted: PrepareChartArguments, context: ToolContext) -> ToolOutput:
    return await asyncio.to_thread(prepare, wanted, context.workspace)


def prepare(wanted: PrepareChartArguments, workspace: Path) -> ToolOutput:
    """Look at the table, and write the chart where one is wanted or suits it."""
    table = _table(wanted.path, workspace)
    said, to = describe(table), f"{os.path.splitext(wanted.path)[0]}.chart.json"
    chart = propose_chart(table, wanted.path, wanted.title) if wanted.kind is None else None
    chart = Chart(
        data=wanted.path,
        kind=wanted.kind or (chart.kind if chart else "bar"),
        x=wanted.x or (chart.x if chart else ""),
        y=tuple(wanted.y) or (chart.y if chart else ()),
        title=wanted.title,
    )
    try:
        make_drawing(chart, table)
    except ToolFailed as error:
        raise ToolFailed(f"{said}\nNo chart was written: {error}") from None
    text = msgspec.json.format(msgspec.json.encode(asdict(chart)), indent=2).decode()
    files.write(files.WriteFileArguments(path=to, content=f"{text}\n"), workspace)
    return ToolOutput(text=f"{said}\nThe chart is in {to}:\n{text}", changed=(to,))


def _table(path: str, workspace: Path) -> Table:
    with paths.open_read(workspace, path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolFailed(f"{path} has over {MAX_BYTES // 1_000_000} MB. Group the data first.")
    return parse(data)


def _load_drawing(path: str, workspace: Path) -> Drawing:
    with paths.open_read(workspace, path) as file:
        data = file.read(100_000)
    try:
        chart = msgspec.json.decode(data, type=Chart)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolFailed(f"{path} is no chart: {error}.") from None
    return make_drawing(chart, _table(chart.data, workspace))


async def _draw_apart(drawn: Drawing, workspace: Path) -> bytes:
    """The picture, by a process of its own. Fonts are looked for once a workspace."""
    fonts = Path(os.path.realpath(workspace)) / paths.OWN / "matplotlib"
    with paths.folder(workspace, fonts, create=True):
        env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MPLCONFIGDIR": str(fonts)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_DRAW)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=env,
        start_new_session=True,
    )
    try:
        async with ambient.limit(LIMIT):
            data, said = await process.communicate(msgspec.json.encode(drawn))
    except TimeoutError:
        raise ToolFailed(f"The chart took over {LIMIT:g} s. Show less in it.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it runs other programs to find fonts
            await process.wait()
    if process.returncode or not data.startswith(b"\x89PNG"):
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        raise ToolFailed(f"The chart could not be drawn: {last[0][:300]}")
    return data


def _put(path: str, data: bytes, workspace: Path) -> None:
    """The picture in the workspace; a file that was there is kept."""
    real = paths.resolve(workspace, path, write=True)
    there = paths.status(workspace, real) is not None
    old = backups.content(workspace, path)[0] if there else None
    if old == data:
        return
    paths.take_room(workspace, len(data) + len(old or b""))
    try:
        backups.keep(workspace, real.relative_to(os.path.realpath(workspace)), old)
        backups.store(workspace, real, data, 0o644)
    except OSError as error:
        raise paths.as_tool_failure(path, error) from None


def _bind(wanted: VisualizeArguments, workspace: Path) -> str:
    """Bind an approval to the chart's specification and its data as they are now."""
    said = _describe_table(wanted, workspace)
    try:
        path = msgspec.json.decode(said, type=Chart).data
        with paths.open_read(workspace, path) as file:
            data = hashlib.sha256(file.read(MAX_BYTES + 1)).hexdigest()
    except (ToolFailed, msgspec.DecodeError, RecursionError):
        data = ""
    return f"{said}\n{data}"


def _preview(wanted: VisualizeArguments, workspace: Path) -> str:
    """The chart, for the approval card."""
    return _describe_table(wanted, workspace)[:2_000]


def _describe_table(wanted: VisualizeArguments, workspace: Path) -> str:
    try:
        with paths.open_read(workspace, wanted.path) as file:
            return file.read(100_000).decode("utf-8", "replace")
    except ToolFailed:
        return ""
