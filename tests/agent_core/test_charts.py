"""Charts: what a table is taken for, what does not fit, and real pictures."""

import asyncio
import io
from pathlib import Path

import msgspec
import psutil
import pytest
from PIL import Image

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.tools.code.charts import tools
from agent_core.tools.code.charts.chart import SHAPES, Chart, make_drawing, propose_chart
from agent_core.tools.code.charts.table import Table, describe, number, parse
from agent_core.tools.code.charts.tools import (
    PrepareChartArguments,
    VisualizeArguments,
    chart_tools,
)
from agent_core.tools.contract import ToolContext
from agent_core.tools.send import FileStore
from tests.fakes.waiting import PATIENCE

SALES = """day,shop,sold,cost $x$
2026-01-01,North,10,3.5
2026-01-02,South,12,

2026-01-03,North,9,2
"""


def sheet(text: str = SALES) -> Table:
    return parse(text.encode())


# ---- tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "value"),
    [("12", 12), ("-1.5e3", -1500), (".5", 0.5), ("1,234,567.5", 1234567.5), ("3,5", 3.5)]
    + [("", None), ("1 2", None), ("1.2.3", None), ("nan", None), ("inf", None), ("0x1", None)]
    + [("1_000", 1000), ("1__0", None), ("1_", None), ("1_.5", None)],
)
def test_what_is_a_number(cell: str, value: float | None) -> None:
    assert number(cell) == value


def test_columns_and_their_kinds() -> None:
    table = sheet()
    assert [(one.name, one.kind) for one in table.columns] == [
        ("day", "date"), ("shop", "text"), ("sold", "number"), ("cost $x$", "number"),
    ]  # fmt: skip
    assert table.rows == 3 and table.columns[3].numbers() == (3.5, None, 2)
    said = describe(table)
    assert "3 rows, 4 columns" in said and "sold: number, 9 to 12, mean 10.3333" in said
    assert "1 empty" in said and "'North', 'South'" in said


def test_files_as_they_are_found() -> None:
    german = parse("Größe;Preis\n1;3,5\n2;4,5\n".encode("latin-1"))
    assert [one.name for one in german.columns] == ["Größe", "Preis"]
    assert german.columns[1].numbers() == (3.5, 4.5)
    odd = parse(b'\xef\xbb\xbfa,a,\n"x\ny",2\n1,2,3,4\n')
    assert [one.name for one in odd.columns] == ["a", "a (2)", "column 3"]
    assert odd.columns[0].cells == ("x\ny", "1") and odd.columns[2].cells == ("", "3")
    with pytest.raises(ToolFailed, match="empty"):
        parse(b"\n\n")


# ---- charts ------------------------------------------------------------------------------


def test_what_is_hostile_is_read_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = parse(b"x" + b"," * 1_000_000 + b"\n" + b"1," * 1_000_000)
    assert len(wide.columns) == 200 and wide.rows == 1
    sixteen = parse("a;b\n1,5;x\n".encode("utf-16"))
    assert [(one.name, one.kind) for one in sixteen.columns] == [("a", "number"), ("b", "text")]
    assert parse(b"a\0b,c\n=1+1,2\n").columns[0].kind == "text"
    monkeypatch.setattr("agent_core.tools.code.charts.table.MAX_CELLS", 100)
    cut = sheet("a,b\n" + "1,2\n" * 200)
    assert cut.cut and cut.rows < 60 and "the file has more" in describe(cut)


@pytest.mark.parametrize(
    ("text", "kind", "x", "y"),
    [
        (SALES, "line", "day", ("sold", "cost $x$")),
        ("shop,sold\nN,1\nS,2\n", "bar", "shop", ("sold",)),
        ("a,b\n1,2\n3,4\n", "scatter", "a", ("b",)),
        ("a\n1\n2\n", "histogram", "", ("a",)),
    ],
)
def test_a_chart_is_proposed_that_suits(text: str, kind: str, x: str, y: tuple[str, ...]) -> None:
    chart = propose_chart(sheet(text), "a.csv", "")
    assert (chart.kind, chart.x, chart.y) == (kind, x, y)
    make_drawing(chart, sheet(text))


def test_bars_of_the_same_label_are_added_up() -> None:
    drawn = make_drawing(Chart(data="a", kind="bar", x="shop", y=("sold",)), sheet())
    assert drawn.x == ("North", "South") and drawn.series[0].values == (19, 12)
    counted = make_drawing(Chart(data="a", kind="pie", x="shop"), sheet())
    assert counted.series[0].values == (2, 1) and counted.series[0].name == "rows"


@pytest.mark.parametrize(
    ("chart", "why"),
    [
        (Chart(data="a", kind="bar", x="shop", y=("profit",)), "no column 'profit'. Columns: day"),
        (Chart(data="a", kind="bar", x="shop", y=("day",)), "holds no numbers"),
        (Chart(data="a", kind="line", x="day"), "needs columns"),
        (Chart(data="a", kind="pie", x="shop", y=("sold", "cost $x$")), "one column"),
        (Chart(data="a", kind="box"), "needs columns"),
        (Chart(data="a", kind="scatter", y=("sold",)), "no column ''"),
    ],
)
def test_what_does_not_fit_is_said(chart: Chart, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        make_drawing(chart, sheet())


def test_too_much_is_not_drawn() -> None:
    many = "a,b\n" + "".join(f"w{n},{n}\n" for n in range(100))
    with pytest.raises(ToolFailed, match="100 different values"):
        make_drawing(Chart(data="a", kind="bar", x="a", y=("b",)), sheet(many))
    with pytest.raises(ToolFailed, match="above zero"):
        make_drawing(Chart(data="a", kind="pie", x="a", y=("b",)), sheet("a,b\nx,-1\ny,2\n"))


# ---- pictures ----------------------------------------------------------------------------


async def drawn(workspace: Path, kept: Path, **more: object) -> tuple[ToolOutput, ToolOutput]:
    prepare, visualize = chart_tools(FileStore(kept))
    context = ToolContext(workspace=workspace, key="k", limit=75.0, output=lambda text: None)
    given = PrepareChartArguments.model_validate({"path": "d/a.csv", "title": "Sales in $", **more})
    one = await prepare.call(given, context)
    two = await visualize.call(VisualizeArguments(path="d/a.chart.json", caption="See"), context)
    assert isinstance(one, ToolOutput) and isinstance(two, ToolOutput)
    return one, two


WANTED: dict[str, dict[str, object]] = {
    "line": {"x": "day", "y": ["sold", "cost $x$"]},
    "bar": {"x": "shop", "y": ["sold", "cost $x$"]},
    "scatter": {"x": "sold", "y": ["cost $x$"]},
    "histogram": {"y": ["sold"]},
    "pie": {"x": "shop"},
    "box": {"y": ["sold", "cost $x$"]},
}


def test_every_kind_is_drawn() -> None:
    from agent_core.tools.code.charts import draw

    def picture(kind: str) -> bytes:
        chart = msgspec.convert({"data": "a", "kind": kind, **WANTED[kind]}, Chart)
        data = draw.draw(msgspec.json.decode(msgspec.json.encode(make_drawing(chart, sheet()))))
        with Image.open(io.BytesIO(data)) as image:
            assert image.size == (1200, 750)
            assert len(image.convert("RGB").getcolors(1 << 20) or ()) > 10, "not an empty page"
        return data

    assert set(WANTED) == set(SHAPES)
    assert len({picture(kind) for kind in SHAPES}) == len(SHAPES)


async def test_a_chart_is_given_to_people(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.csv").write_text(SALES)
    (tmp_path / "d/a.png").write_bytes(b"old")
    made, given = await drawn(tmp_path, tmp_path / "kept")
    assert made.changed == ("d/a.chart.json",) and given.changed == ("d/a.png",)
    (file,) = given.files
    assert (file.name, file.mime, given.caption) == ("a.png", "image/png", "See")
    data = (tmp_path / "d/a.png").read_bytes()
    assert FileStore(tmp_path / "kept").read(file.ref) == data and data.startswith(b"\x89PNG")
    kept = [p for p in (tmp_path / ".turnkeeper/backups/d").iterdir() if p.name.startswith("a.png")]
    assert [one.read_bytes() for one in kept] == [b"old"], "what was there is kept"


async def test_its_lack_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    (tmp_path / "a.chart.json").write_text("{}")
    context = ToolContext(workspace=tmp_path, key="k", limit=75.0, output=lambda text: None)
    with pytest.raises(ToolFailed, match=r"turnkeeper\[charts\]"):
        await chart_tools(FileStore(tmp_path))[1].call(
            VisualizeArguments(path="a.chart.json"), context
        )


async def test_what_is_no_chart_and_what_is_no_data(tmp_path: Path) -> None:
    context = ToolContext(workspace=tmp_path, key="k", limit=75.0, output=lambda text: None)
    prepare, visualize = chart_tools(FileStore(tmp_path / "kept"))
    (tmp_path / "x.json").write_text("[1]")
    (tmp_path / "out.json").write_bytes(msgspec.json.encode(Chart(data="../a.csv", kind="pie")))
    (tmp_path / "a.csv").write_text(SALES)
    (tmp_path / "b.json").write_bytes(b'{"data":"\xff","kind":"pie"}')
    (tmp_path / "c.json").write_text('{"data":"a.csv","kind":"pie","more":' + "[" * 9_000)
    for path in ("b.json", "c.json"):
        with pytest.raises(ToolFailed, match="is no chart"):
            await visualize.call(VisualizeArguments(path=path), context)
    for path, why in (("x.json", "is no chart"), ("out.json", "leaves"), ("none", "There is no")):
        with pytest.raises(ToolFailed, match=why):
            await visualize.call(VisualizeArguments(path=path), context)
    with pytest.raises(ToolFailed, match="4 columns(.|\n)*No chart was written"):
        await prepare.call(PrepareChartArguments(path="a.csv", kind="line"), context)
    assert not (tmp_path / "a.chart.json").exists()


async def test_an_approval_of_a_chart_shows_it_and_holds_for_its_data(tmp_path: Path) -> None:
    prepare, visualize = chart_tools(FileStore(tmp_path / "kept"))
    (tmp_path / "a.csv").write_text(SALES)
    context = ToolContext(workspace=tmp_path, key="k", limit=75.0, output=lambda text: None)
    await prepare.call(PrepareChartArguments(path="a.csv"), context)
    given = VisualizeArguments(path="a.chart.json")
    assert visualize.bind is not None and visualize.preview is not None
    assert '"data": "a.csv"' in visualize.preview(given, tmp_path)
    seen = {visualize.bind(given, tmp_path)}
    (tmp_path / "a.csv").write_text(SALES.replace("10", "99"))
    seen.add(visualize.bind(given, tmp_path))
    (tmp_path / "a.chart.json").write_bytes(b"\xff" + b"[" * 9_000)
    assert len(seen | {visualize.bind(given, tmp_path)}) == 3


async def test_a_cancelled_drawing_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.csv").write_text(SALES)
    task = asyncio.ensure_future(drawn(tmp_path, tmp_path / "kept"))

    def drawers() -> list[psutil.Process]:
        return [one for one in psutil.Process().children(recursive=True) if draws(one)]

    def draws(one: psutil.Process) -> bool:
        try:
            return "draw.py" in " ".join(one.cmdline())
        except psutil.Error:
            return False  # it ends right now

    async with asyncio.timeout(PATIENCE):
        while not drawers():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(PATIENCE):  # what it had started itself dies with it, a moment later
        while drawers():
            await asyncio.sleep(0.01)
