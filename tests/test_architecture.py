"""The rules of the house that no other tool checks: sizes, names, borders, and what no file says."""

import ast
import builtins
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.fakes.distributions import find_needed

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent_core", "gateway", "adapters", "cron")
MAX_LINES = 600
MAX_BODY = 50
MAX_FILES = 20
BAD_FILES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "core", "types"}
IRREGULAR = frozenset(
    [
        "become",
        "begun",
        "bent",
        "bitten",
        "blown",
        "born",
        "bound",
        "broken",
        "brought",
        "built",
        "bought",
        "cast",
        "caught",
        "chosen",
        "dealt",
        "done",
        "drawn",
        "driven",
        "eaten",
        "fallen",
        "fed",
        "felt",
        "flown",
        "forbidden",
        "forgotten",
        "fought",
        "found",
        "frozen",
        "given",
        "gone",
        "got",
        "grown",
        "heard",
        "held",
        "hidden",
        "hung",
        "kept",
        "known",
        "laid",
        "lain",
        "learnt",
        "led",
        "left",
        "lent",
        "lit",
        "lost",
        "made",
        "meant",
        "met",
        "overtaken",
        "paid",
        "proven",
        "rebuilt",
        "redrawn",
        "rewritten",
        "ridden",
        "risen",
        "rung",
        "said",
        "sat",
        "seen",
        "sent",
        "shaken",
        "shot",
        "shown",
        "shrunk",
        "slept",
        "slid",
        "sold",
        "sought",
        "spent",
        "spoken",
        "sprung",
        "spun",
        "stolen",
        "stood",
        "struck",
        "stuck",
        "sung",
        "sunk",
        "swept",
        "sworn",
        "swum",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "undone",
        "withdrawn",
        "woken",
        "won",
        "worn",
        "written",
    ]
)
NO_PARTICIPLES = frozenset(
    [
        "anything",
        "bring",
        "bleed",
        "bleeding",
        "breed",
        "ceiling",
        "cling",
        "during",
        "embed",
        "evening",
        "everything",
        "exceed",
        "feed",
        "fling",
        "heed",
        "hundred",
        "king",
        "morning",
        "need",
        "nothing",
        "ping",
        "proceed",
        "red",
        "ring",
        "seed",
        "shed",
        "sing",
        "something",
        "speed",
        "spring",
        "sting",
        "string",
        "succeed",
        "swing",
        "thing",
        "wed",
        "weed",
        "wing",
    ]
)
NO_NAMES = {
    "about", "above", "across", "after", "again", "alive", "along", "among", "any", "around",
    "at", "back", "bare", "before", "behind", "below", "beside", "between", "both", "by",
    "canonical", "down",
    "during", "each", "earlier", "every", "few", "first", "flat", "for", "from", "how", "in",
    "inside", "into", "large", "last", "late", "later", "latest", "legible", "long", "loose",
    "lost", "many", "more", "most", "near", "new", "newest", "normal", "of", "off", "old",
    "on", "once", "one", "only", "other", "out", "outside", "over", "plain", "public", "quickly", "quietly", "raw",
    "recent", "safe", "same", "short", "simple", "small", "soon", "still", "strict", "through",
    "to", "too", "under", "unseen", "until", "up", "upon", "what", "when", "where", "which",
    "whole", "why", "with", "within", "without",
}  # fmt: skip
ERROR = re.compile(r"(?<![\w`.])(?:[A-Z]\w*(?:Error|Failed|Refused|Rejected)|Refused)\b")
QUESTIONS = {"allows", "are", "begins", "can", "fits", "has", "is", "may", "spends", "was"}
UNIT = re.compile("SECONDS|HOUR|DAY|TIMEOUT|SCORE")
ADJECTIVE = re.compile(r"[a-z]{3,}(?:able|ible|less)")
NAMED_BY_ADJECTIVE = {
    "_variable": "a noun, of the environment",
    "readable": "rows that can be read, also of the job stores",
    "visible": "the form of a text in which all its signs are seen",
    "once": "of a scope: the document's own word",
    "latest": "a port's, beside the nouns `views` and `summary`",
    "newest": "a port's, beside the noun `transcript`",
    "recent": "a port's, beside the noun `summary`",
}
NAMED_BY_PARTICIPLE = {
    "built_in": "the built-in skills; the adjective is the term",
    "planning_skill": "the tool's own name",
    "planning_tool": "the tool's own name",
    "finding_tools": "the tools that find tools",
    "sandboxed_tools": "the profile's own name",
    "_written_file": "a noun phrase",
    "_closing_fence": "a noun phrase",
    "_fixed_times": "a noun phrase",
}
"""Functions whose first word is a participle, each with the reason. This table only shrinks."""
BAD_CLASS = re.compile(r"(Manager|Helper|Impl)$|^Base([A-Z]|$)")
ON_DISK = {
    *("chmod", "exists", "glob", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir"),
    *("read_bytes", "read_text", "rglob", "rmdir", "stat", "symlink_to", "touch", "unlink"),
    *("write_bytes", "write_text"),
}
"""Methods of a path that look at the disk or change it."""
OF_OS = {
    *("access", "chmod", "chown", "fwalk", "link", "listdir", "lstat", "makedirs", "mkdir", "open"),
    *("readlink", "remove", "rename", "replace", "rmdir", "scandir", "stat", "symlink", "truncate"),
    *("unlink", "walk"),
}
CONNECTS = {
    *("ClientSession", "TCPConnector", "UnixConnector", "AsyncClient", "AsyncHTTPTransport"),
    *("HTTPTransport", "HTTPConnection", "HTTPSConnection", "DefaultAioHttpClient", "urlopen"),
    *("AsyncOpenAI", "AsyncAnthropic", "AsyncWebClient", "WebClient", "DDGS", "open_connection"),
    *(
        "create_connection",
        "connect_ex",
        "sock_connect",
        "create_mcp_http_client",
        "from_url",
        "fetch_url",
    ),
    *("fetch_url", "HTTPXRequest", "urlretrieve", "build_opener", "FTP", "SMTP", "OpenAI"),
    "Anthropic",
}
"""What opens a connection, by whichever name it is called."""
ASKS = ("get", "post", "put", "delete", "head", "options", "patch", "request", "stream", "Client")
OF_CLIENTS = frozenset({"aiohttp", "requests", "httpx", "httpx2", "genai", "urllib3"})
CONNECTING = {
    "agent_core/tools/web/fetch.py": "the guarded one: pages, pictures, documents by URL",
    "agent_core/tools/web/proxy.py": "the guarded one: browsers, commands, what MCP servers name",
    "agent_core/mcp/oauth/flow.py": "the guarded proxy, but for the server itself",
    "agent_core/mcp/oauth/split_transport.py": "the guarded proxy, but for the server itself",
    "agent_core/mcp/transport.py": "an operator's server, within its origin",
    "agent_core/tools/web/search.py": "an operator's search engine; the results are not read",
    "agent_core/skills/images/generations.py": "an operator's provider",
    "agent_core/models/anthropic_messages.py": "an operator's provider",
    "agent_core/models/discovery.py": "an operator's provider",
    "agent_core/models/google/client.py": "an operator's provider",
    "agent_core/models/ollama/client.py": "an operator's provider",
    "agent_core/models/openai_chat.py": "an operator's provider",
    "agent_core/models/streamed_http.py": "an operator's provider",
    "agent_core/models/transcription.py": "an operator's provider",
    "agent_core/models/windows.py": "an operator's provider",
    "agent_core/sandboxes/docker/engine.py": "an operator's engine",
    "agent_core/sandboxes/landlock/guard.py": "a sandbox's own address",
    "agent_core/sandboxes/previews/server.py": "a preview's own port",
    "agent_core/sandboxes/supervisor.py": "runs inside, where there is nothing else",
    "gateway/cli/doctor.py": "what an operator set",
    "gateway/cli/init.py": "what an operator types",
    "gateway/cli/prices.py": "one list of prices",
    "gateway/store/redis_wire.py": "an operator's store",
    "adapters/discord/transport.py": "the platform; files from its own hosts, not redirected",
    "adapters/slack/transport.py": "the platform; files from its own hosts, not redirected",
    "adapters/telegram/transport.py": "the platform, whose files have no address of their own",
}
"""Who opens connections, and to what: an address that a model, a page, a server or a person names is
reached by the guarded ones alone."""
NOT_IN_WORKSPACES = {
    "agent_core/tools/paths.py": "the one place that does",
    "agent_core/tools/room.py": "measures workspaces",
    "agent_core/config/plain_files.py": "files of the operator and of the gateway",
    "agent_core/tools/send.py": "copies that the gateway keeps",
    "agent_core/tools/browser/bubblewrap_walls.py": "the browser's own folder",
    "agent_core/tools/browser/chromium.py": "the browser's own folder",
    "agent_core/tools/browser/contained.py": "the browser's own folder",
    "agent_core/tools/browser/container_walls.py": "the browser's own folder",
    "agent_core/tools/browser/enclosure.py": "the browser's own folder",
    "agent_core/tools/browser/inside.py": "runs inside, where there is nothing else",
    "agent_core/sandboxes/bwrap.py": "mounts the workspace",
    "agent_core/sandboxes/cgroups/groups.py": "the kernel's control groups",
    "agent_core/sandboxes/cgroups/hierarchy.py": "the kernel's control groups",
    "agent_core/sandboxes/docker/tier.py": "a folder of its own for a trial",
    "agent_core/sandboxes/e2b/files.py": "runs elsewhere, in the copy of a workspace",
    "agent_core/sandboxes/e2b/relay.py": "runs elsewhere",
    "agent_core/sandboxes/e2b/tier.py": "reads its own programs",
    "agent_core/sandboxes/folders.py": "gives the workspace to its user, by descriptors",
    "agent_core/sandboxes/landlock/calls.py": "reads what it may itself",
    "agent_core/sandboxes/landlock/guard.py": "acts for commands, by descriptors",
    "agent_core/sandboxes/landlock/supervisor.py": "opens what Landlock is to allow",
    "agent_core/sandboxes/landlock/tier.py": "looks who may pass to the workspace",
    "agent_core/sandboxes/owners.py": "who a process is, and folders of its own",
    "agent_core/sandboxes/buckets/folder_store.py": "a folder of the gateway's own",
    "agent_core/sandboxes/previews/book.py": "a file of the gateway's own",
    "agent_core/sandboxes/self_test.py": "folders of its own, which are bait",
    "agent_core/sandboxes/supervisor.py": "runs inside, where there is nothing else",
    "agent_core/tools/code/script/launch.py": "runs inside, where there is nothing else",
    "agent_core/skills/folders.py": "skills of the installation",
    "agent_core/mcp/servers.py": "what servers said, in the data folder",
    "agent_core/mcp/vouching.py": "what of that is allowed, in the data folder",
    "agent_core/journal_file.py": "the library's journal",
    "gateway/store/opening/file_place.py": "the store's own files",
    "agent_core/memory/folder_memory.py": "the library's memory",
    "agent_core/library/entries.py": "the library's journal",
    "agent_core/settings.py": "the settings' file",
    "agent_core/unix_sockets.py": "sockets of the gateway's own",
    "gateway/features/jobs/operator/apply.py": "the operator's job file",
    "gateway/services/operator_instructions.py": "the operator's instructions",
    "gateway/services/operator_rules.py": "the operator's rules",
    "gateway/services/workspaces.py": "sets the folders themselves aside",
    "gateway/settings.py": "the settings' files",
    "gateway/store/sqlite.py": "the store",
    "gateway/services/spoilt_files.py": "files of the data folder",
    "gateway/services/vault.py": "the secrets' file",
    "gateway/texts/languages.py": "our own texts",
}
"""Modules that handle files of the gateway's own by their path."""
ENVIRONMENT = {"agent_core/settings.py", "gateway/settings.py"}
PRINTS = "gateway/cli/"
HOSTS = (
    *("py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs", "npmjs" + ".com"),
    *("proxy." + "golang", "index." + "crates", "ghcr" + ".io", "quay" + ".io", "docker" + ".io"),
)
"""Package registries: the tools find them, no file names them. Put together here so that this
file can be searched like any other."""
SOMEBODY = re.compile(r"(?<![\w.~-])/(?:home|Users)/(?!user\b|nobody\b)[a-z][\w.-]*/")
"""A person's own folder; /home/user is a sandbox's."""
NAMED = re.compile(r"`((?:agent_core|gateway|adapters|cron|tests|benchmarks|examples)/[\w./-]+)`")
EXAMPLES = {"agent_core/tools/tell_time.py"}
"""Paths that the documentation makes up."""
TYPE_ONLY_LEFT = ("agent_core/__init__.py", "agent_core/agent.py")
"""The library's front door, which loads nothing that an import of it does not need."""
MAY_IMPORT_TEST = re.compile(r"^\s*(?:from|import)\s[^(\n]*(?:\([^)]*)?\btest_", re.MULTILINE)
"""What is worth parsing: it takes seconds to parse all tests."""
ROOTS = ("gateway/__main__.py", "gateway/wiring/")
"""The composition root: it imports late what it wires."""
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@cache
def modules() -> tuple[tuple[str, str], ...]:
    """(path from the root, text) of each module of the product."""
    return tuple(
        (path.relative_to(ROOT).as_posix(), path.read_text())
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    )


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, the module itself first; found once for all checks."""
    return tuple(ast.walk(ast.parse(text)))


@pytest.fixture(scope="module", autouse=True)
def _forget_nodes() -> Iterator[None]:
    """They are a million objects, which all later tests of this process would drag along."""
    yield
    nodes.cache_clear()


def tracked() -> list[Path]:
    """The project's files as git has them; without git, all but what is made here."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30)
        names = [name for name in done.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        made = {".venv", ".git", "__pycache__"}
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        names = [str(path) for path in paths if made.isdisjoint(path.parts)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


ALONE = {"agent_core/sandboxes/supervisor.py": "a program that is started by its one file"}
"""Modules that nothing can be taken out of, each with the reason."""


def test_modules_are_short() -> None:
    sizes = {path: text.count("\n") for path, text in modules() if not path.endswith("__init__.py")}
    long = {path: size for path, size in sizes.items() if size > MAX_LINES and path not in ALONE}
    assert not long, f"split these modules (at most {MAX_LINES} lines): {long}"


def test_functions_are_short() -> None:
    long = []
    for path, text in modules():
        for node in nodes(text):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = _body_size(node)
                if size > MAX_BODY:
                    long.append(f"{path}:{node.lineno} {node.name}: {size}")
    assert not long, f"split these functions (at most {MAX_BODY} lines): {long}"


def _body_size(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_folders_stay_small() -> None:
    named = (path for path, _ in modules() if not path.endswith("__init__.py"))
    folders = Counter(path.rpartition("/")[0] for path in named)
    full = {folder: count for folder, count in folders.items() if count > MAX_FILES}
    assert not full, f"part these folders (at most {MAX_FILES} Python files): {full}"


def test_names_say_what_a_thing_is() -> None:
    files = [path for path, _ in modules() if Path(path).stem in BAD_FILES]
    classes = [
        f"{path}:{node.lineno} {node.name}"
        for path, text in modules()
        for node in nodes(text)
        if isinstance(node, ast.ClassDef) and BAD_CLASS.search(node.name)
    ]
    assert not files, f"rename these files by what they own: {files}"
    assert not classes, f"rename these classes by what they are: {classes}"


def test_functions_are_named_by_what_they_do() -> None:
    """By a verb or a noun, never by a participle, which hides whether something is done."""
    found = _find_functions(
        lambda name: not name.startswith("__") and _is_participle(name.strip("_").partition("_")[0])
    )
    wrong = {name: place for name, place in found.items() if name not in NAMED_BY_PARTICIPLE}
    assert not wrong, f"begin these names with a verb: {wrong}"
    assert NAMED_BY_PARTICIPLE.keys() <= found.keys(), "shrink the table"


def test_no_function_is_named_by_a_lone_adjective_or_preposition() -> None:
    found = _find_functions(lambda name: _is_adjective(name.strip("_")))
    wrong = {name: place for name, place in found.items() if name not in NAMED_BY_ADJECTIVE}
    assert not wrong, f"say what these do: {wrong}"
    assert NAMED_BY_ADJECTIVE.keys() <= found.keys(), "shrink the table"


def test_a_name_that_asks_gives_yes_or_no() -> None:
    """`if spends(job):` reads well, and says nothing where it is a text."""
    wrong = [
        f"{path}:{node.lineno} {node.name}"
        for path, text in modules()
        for node in nodes(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.strip("_").partition("_")[0] in QUESTIONS
        and node.returns is not None
        and re.search(r"bool|TypeGuard|TypeIs", ast.unparse(node.returns)) is None
    ]
    assert not wrong, f"say what these return: {wrong}"


def _find_functions(is_meant: Callable[[str], bool]) -> dict[str, str]:
    """The functions and methods, but for properties, whose name is meant, and where each stands."""
    return {
        node.name: f"{path}:{node.lineno}"
        for path, text in modules()
        for node in nodes(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_meant(node.name)
        and not node.name.startswith("__")  # Python's own names
        and not any("property" in ast.unparse(one) for one in node.decorator_list)
    }


def _is_adjective(word: str) -> bool:
    return word in NO_NAMES or ADJECTIVE.fullmatch(word) is not None


def _is_participle(word: str) -> bool:
    if word in NO_PARTICIPLES:
        return False
    return word in IRREGULAR or re.fullmatch(r"\w{2,}ed|\w{3,}ing", word) is not None


def test_a_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path, text in modules():
        for node in nodes(text):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice, f"tell these apart by name: {twice}"


def test_the_arguments_of_a_tool_are_called_so() -> None:
    """Alone, names such as Back, See or Through say neither whose arguments they are nor that."""
    wrong = [
        f"{path}:{node.lineno} {node.name}"
        for path, text in modules()
        for node in nodes(text)
        if isinstance(node, ast.ClassDef)
        and (ast.get_docstring(node) or "").startswith("Arguments of ")
        and not node.name.endswith("Arguments")
    ]
    assert not wrong, f"end these names with Arguments: {wrong}"


def test_a_time_says_its_unit() -> None:
    """In its name, below it or beside it: `LIMIT = 60.0` alone may be anything of anything."""
    wrong = [
        f"{path}:{one.lineno} {', '.join(names)}"
        for path, text in modules()
        for one, after in pairwise([*ast.parse(text).body, ast.Pass()])
        if isinstance(one, ast.Assign) and (names := list(_name_floats(one)))
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
        and "#" not in text.splitlines()[one.lineno - 1]
    ]
    assert not wrong, f"say the units of these: {wrong}"


def _name_floats(one: ast.Assign) -> Iterator[str]:
    """The names that a statement gives to numbers with a point, but for those that say a unit."""
    names, values = [one.targets[0]], [one.value]
    match names[0], values[0]:
        case ast.Tuple(elts=several), ast.Tuple(elts=each):
            names, values = several, each
    for name, value in zip(names, values, strict=False):
        inside = [*ast.walk(value)]
        number = all(isinstance(part, ast.Constant | ast.BinOp | ast.operator) for part in inside)
        point = any(isinstance(part, ast.Constant) and type(part.value) is float for part in inside)
        if number and point and not UNIT.search(ast.unparse(name)):
            yield ast.unparse(name)


def test_every_module_says_what_it_owns() -> None:
    silent = [
        path
        for path, text in modules()
        if not path.endswith("__init__.py") and not ast.get_docstring(nodes(text)[0])
    ]
    assert not silent, f"no docstring: {silent}"


def test_a_docstring_begins_with_an_imperative_or_a_noun() -> None:
    """A clause in their place ("What is kept of it") has to be read twice."""
    clauses = {"What", "Whatever", "Which", "Whether", "Who", "Whose", "Those"}
    found = [
        f"{path}:{node.lineno}: {node.value.value.split(chr(10))[0]}"
        for path, text in modules()
        for node in nodes(text)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value.split()[0] in clauses
    ]
    assert not found, "\n".join(["begin otherwise:", *found])


def test_a_docstring_names_errors_that_its_package_has() -> None:
    """The old name of an error, or one of another package, misleads whoever handles it."""
    known = {package: set(dir(builtins)) for package in PACKAGES}
    named: set[tuple[str, str]] = set()
    for path, text in modules():
        for node in nodes(text):
            known[path.partition("/")[0]] |= set(_list_names(node))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found = ERROR.findall(ast.get_docstring(node) or "")
                named |= {(path, name) for name in found}
    wrong = {one for one in named if one[1] not in known[one[0].partition("/")[0]]}
    assert not wrong, f"name these errors as they are called: {wrong}"


def _list_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.ClassDef(name=name) | ast.Attribute(attr=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name


def test_no_modules_import_each_other() -> None:
    """Imports inside functions and for types alone count too: both hide a circle."""
    circles = _circles(_imports())
    assert not circles, f"open these circles: {circles}"


def test_no_module_of_ours_is_imported_for_its_types_alone() -> None:
    hidden = [
        f"{path}:{line} {name}"
        for path, text in modules()
        if not path.startswith((*ROOTS, *TYPE_ONLY_LEFT))
        for line, name in _type_only(text)
    ]
    assert not hidden, f"import these as they are used, or ask for less: {hidden}"


def _type_only(text: str) -> Iterator[tuple[int, str]]:
    """(line, module) of own modules that are imported under TYPE_CHECKING."""
    for node in nodes(text) if "TYPE_CHECKING" in text else ():
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for inner in node.body:
                for name in _imported(inner):
                    if name.partition(".")[0] in PACKAGES:
                        yield inner.lineno, name


def _imported(node: ast.AST) -> tuple[str, ...]:
    """What one statement imports: modules, or names that may be modules."""
    match node:
        case ast.Import():
            return tuple(alias.name for alias in node.names)
        case ast.ImportFrom(module=str(module)):
            return tuple(f"{module}.{alias.name}" for alias in node.names)
        case _:
            return ()


def _imports() -> dict[str, set[str]]:
    """The modules of the product by name, each with those that it imports, wherever it does."""
    found: dict[str, set[str]] = {}
    for path, text in modules():
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found[name] = {one for node in nodes(text) for one in _imported(node)}
    for name, imported in found.items():
        own = {one if one in found else one.rpartition(".")[0] for one in imported}
        found[name] = {one for one in own if one in found and one != name}
    return found


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach each other (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        open_ones.append(name)
        for other in sorted(graph[name]):
            if other not in order:
                visit(other)
            if other in open_ones:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == order[name]:
            at = open_ones.index(name)
            circle = sorted(open_ones[at:])
            del open_ones[at:]
            if len(circle) > 1:
                circles.append(circle)

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return circles


def test_circles_are_found_and_lines_are_not() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set[str]()}
    assert _circles(graph) == [["a", "b", "c"]]
    assert _circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    source = "if TYPE_CHECKING:\n    from gateway.ports import Adapter\n    import aiohttp\n"
    assert list(_type_only(source)) == [(2, "gateway.ports.Adapter")]


def test_a_session_is_handed_to_nobody() -> None:
    """Features get a Context; only the host runs sessions."""
    own = ("gateway/conversation/session.py", "gateway/conversation/host.py")
    given = [
        f"{path}:{node.lineno} {node.name}"
        for path, text in modules()
        if path.startswith("gateway/") and path not in own and "Session" in text
        for node in nodes(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for one in (*node.args.args, *node.args.kwonlyargs)
        if one.annotation is not None and re.search(r"\bSession\b", ast.unparse(one.annotation))
    ]
    assert not given, f"take a Context, or what is needed of it: {given}"


def test_only_settings_read_the_environment() -> None:
    readers = [
        f"{path}:{node.lineno}"
        for path, text in modules()
        if path not in ENVIRONMENT
        for node in nodes(text)
        if _reads_environment(node)
    ]
    assert not readers, f"take these from the settings: {readers}"


def _reads_environment(node: ast.AST) -> bool:
    names = {"environ", "environb", "getenv", "putenv"}
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(alias.name in names for alias in node.names)
    if not isinstance(node, ast.Attribute) or node.attr not in names:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "os"


def test_no_path_of_a_workspace_is_used_by_its_name() -> None:
    """Commands plant links there: only agent_core.tools.paths opens, makes or looks at anything."""
    own = ("gateway/ops/", "gateway/cli/")
    users = [
        f"{path}:{node.lineno}"
        for path, text in modules()
        if path.startswith(("agent_core/", "gateway/")) and not path.startswith(own)
        if path not in NOT_IN_WORKSPACES
        for node in nodes(text)
        if isinstance(node, ast.Call) and _uses_path(node)
    ]
    assert not users, f"go through agent_core.tools.paths: {users}"


def _uses_path(call: ast.Call) -> bool:
    """A call that gets at a file by a path, and not by an open folder's descriptor."""
    if isinstance(call.func, ast.Name):
        opened = call.args[0] if call.args else None
        return call.func.id == "open" and not (
            isinstance(opened, ast.Name) and opened.id == "descriptor"
        )
    if not isinstance(call.func, ast.Attribute):
        return False
    name, of = call.func.attr, call.func.value
    module = of.id if isinstance(of, ast.Name) else ""
    if module == "os":
        known = {keyword.arg for keyword in call.keywords}
        return name in OF_OS and not known & {"dir_fd", "src_dir_fd"}
    if module == "paths":
        return False
    if module == "shutil":
        return name != "which"
    of_path = isinstance(of, ast.Attribute) and of.attr == "path"
    return name in ON_DISK or (of_path and name in ("exists", "isdir", "isfile", "islink"))


def test_only_known_modules_open_connections() -> None:
    """An address that somebody names leads to where only the gateway can look."""
    found = {
        path
        for path, text in modules()
        for node in nodes(text)
        if isinstance(node, ast.Call) and _opens_connection(node)
    }
    assert found - set(CONNECTING) == set(), "take agent_core.tools.web.fetch or its proxy"
    assert set(CONNECTING) - found == set(), "these open none"


def _opens_connection(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in CONNECTS
    if not isinstance(call.func, ast.Attribute):
        return False
    of = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
    return call.func.attr in CONNECTS or (of in OF_CLIENTS and call.func.attr in ASKS)


def test_only_tables_are_laid_out_by_hand() -> None:
    wrong = [
        f"{path}:{number}"
        for path, text in modules()
        for number, line in enumerate(text.splitlines(), 1)
        if "# fmt: " + "skip" in line and line.strip()[0] not in ")]}"
    ]
    assert not wrong, f"let the formatter lay these out: {wrong}"


def test_only_the_command_line_prints() -> None:
    printers = [
        f"{path}:{node.lineno}"
        for path, text in modules()
        if not path.startswith(PRINTS)
        for node in nodes(text)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "input")
    ]
    assert not printers, f"log these: {printers}"


NAMES_PRESETS = {
    "agent_core/tools/web/hosts.py", "tests/agent_core/test_sandbox_network.py", "docs/security.md",
}  # fmt: skip
"""The public hosts that an operator may open in one word, as data; nothing there calls them."""


def test_no_file_names_a_registry_or_a_machine() -> None:
    here = (f"{ROOT}/",) if len(ROOT.parts) > 2 else ()
    found = []
    for path in tracked():
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        preset = str(path.relative_to(ROOT)) in NAMES_PRESETS
        found += [
            f"{path.relative_to(ROOT)}:{n}: {line.strip()[:100]}"
            for n, line in enumerate(lines, 1)
            if any(name in line for name in (*(() if preset else HOSTS), *here))
            or SOMEBODY.search(line)
        ]
    assert not found, f"hosts of registries or paths of one machine: {found}"


def test_what_the_documentation_names_is_there() -> None:
    broken = []
    pages = (*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md"))
    for page in sorted(pages):
        named = set(NAMED.findall(page.read_text())) - EXAMPLES
        broken += [
            f"{page.relative_to(ROOT)}: {path}" for path in named if not (ROOT / path).exists()
        ]
        for link in LINK.findall(page.read_text()):
            target = link.partition("#")[0]
            if "://" in link or not target:
                continue
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken, f"not there any more: {broken}"


def test_each_picture_of_the_documentation_is_shown() -> None:
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    shown = {
        (page.parent / link).resolve() for page in pages for link in LINK.findall(page.read_text())
    }
    pictures = {one for kind in ("png", "svg") for one in (ROOT / "docs").rglob(f"*.{kind}")}
    assert pictures and not {one.name for one in pictures - shown}


def test_nothing_is_imported_that_only_development_has() -> None:
    """`make run`, the wheel and the image install what running needs, or one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].keys() - {"dev"}
    needed = find_needed("turnkeeper", extras)
    owners = packages_distributions()
    lost = {
        f"{path}: {name}"
        for path, text in modules()
        for node in nodes(text)
        for name in {one.partition(".")[0] for one in _imported(node)}
        if name not in (*PACKAGES, *sys.stdlib_module_names)
        and not {canonicalize_name(one) for one in owners.get(name, ())} & needed
    }
    assert not lost, f"declare these in pyproject.toml: {lost}"


def test_no_test_imports_another_test() -> None:
    """What tests share lies in `fakes/`, in a module that is no test, or in a conftest."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if MAY_IMPORT_TEST.search(text := path.read_text())
        for node in nodes(text)
        if isinstance(node, ast.Import | ast.ImportFrom) and _imports_test(node)
    ]
    assert not found, f"move what these share: {found}"


def test_no_way_to_import_a_test_is_overlooked() -> None:
    for source in (
        "import tests.test_a\n",
        "    from tests.gateway.test_a import b\n",
        "from tests import a, test_b as c\n",
        "from tests.gateway import (\n    a,\n    test_b,\n)\n",
    ):
        assert MAY_IMPORT_TEST.search(source), source


def _imports_test(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{name}" for name in names]
    modules = [name.split(".") for name in names if name.startswith("tests.")]
    return any(part.startswith("test_") for parts in modules for part in parts)


def test_the_version_stands_in_one_place_and_in_the_changelog() -> None:
    from gateway.settings import VERSION

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "gateway/settings.py"
    assert f"## {VERSION}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_is_short_and_names_the_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 170
    for command in ("make run", "make check", "make test", "make prove", "make bench"):
        assert command in text
