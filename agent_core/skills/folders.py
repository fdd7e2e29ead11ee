"""Skills without code: folders with a SKILL.md, whose instructions the model follows itself.

A SKILL.md begins with its name and description between two lines of `---`; the rest is the
instructions. Other files of the folder may be read by their names.
"""

import os
import re
import stat
from itertools import islice
from pathlib import Path

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.skills.contract import Schema, SkillContext, SkillMetadata, Values, fields
from agent_core.text import escape_name
from agent_core.tools import paths

FILE = "SKILL.md"
MAX_FOLDERS = 200
MAX_FILES, MAX_SEEN, MAX_DEPTH = 50, 2_000, 8
"""Maximum files of a skill that may be read, entries that are visited to find them, and folders
within each other."""
MAX_READ = 100_000
"""Characters of a SKILL.md; the rest would not be shown."""
LONG = 20_000
"""Characters of instructions, or of a file, that are shown."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HEAD = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")

_PARAMETERS: Schema = fields(
    {}, {"file": {"type": "string", "description": "A file of the skill, in place of its words."}}
)
_OUTPUT: Schema = fields({"text": {"type": "string"}}, {"files": {"type": "array"}})


class FolderSkill(Struct, frozen=True, kw_only=True):
    """A skill as read from its folder. `why`: its fault, and what to do."""

    name: str
    description: str = ""
    version: str = "1.0.0"
    words: str = ""
    files: tuple[str, ...] = ()
    folder: str
    why: str = ""

    @property
    def metadata(self) -> SkillMetadata:
        """Its description."""
        return SkillMetadata(
            id=self.name,
            version=self.version,
            description=self.description,
            category="instructions",
            parameters=_PARAMETERS,
            output_schema=_OUTPUT,
        )

    @property
    def tools(self) -> tuple[str, ...]:
        """(): it calls nothing itself."""
        return ()

    def why_unusable(self) -> str:
        """Return the fault of its folder."""
        return self.why

    async def execute(self, context: SkillContext, params: Values) -> Values:
        """Return its instructions, or one of its files."""
        name = params.get("file")
        if not name:
            return {"text": self.words, "files": list(self.files)}
        if name not in self.files:
            known = ", ".join(self.files) or "none"
            raise ToolFailed(f"The skill has no file {name!r}. Its files: {known}.")
        return {"text": await context.read(lambda: _content(Path(self.folder), str(name)))}


def find_skills(folder: Path) -> tuple[FolderSkill, ...]:
    """The skills below `folder`, by name. Blocks."""
    try:
        inner = sorted(one for one in folder.iterdir() if _is_legible(one) and _is_meant(one))
    except OSError:
        return ()
    return tuple(map(_read, inner[:MAX_FOLDERS]))


def _is_meant(folder: Path) -> bool:
    """Return True if it has a SKILL.md, or may have one: then reading it says why not."""
    try:
        return (folder / FILE).is_file()
    except OSError:
        return True


def _read(folder: Path) -> FolderSkill:
    try:
        with (folder / FILE).open(encoding="utf-8") as file:
            text = file.read(MAX_READ)
    except (OSError, UnicodeDecodeError) as error:
        return _make_broken(folder, f"its {FILE} cannot be read ({_explain(error)})")
    head = _HEAD.match(text.lstrip("\ufeff"))
    if head is None:
        return _make_broken(
            folder, f"its {FILE} does not begin with name and description between ---"
        )
    said = _fields(head[1])
    name, about = said.get("name", folder.name), said.get("description", "")
    if not _NAME.fullmatch(name):
        return _make_broken(folder, "its name may have small letters, digits, - and _ only")
    if not about:
        return _make_broken(folder, f"its {FILE} has no description")
    return FolderSkill(
        name=name,
        description=about[:1_000],
        version=said.get("version", "1.0.0"),
        words=_cut(text.lstrip("\ufeff")[head.end() :].strip()),
        files=_files(folder),
        folder=str(folder),
    )


def _explain(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or "" if isinstance(error, OSError) else f"{error.reason}, no UTF-8"


def _make_broken(folder: Path, why: str) -> FolderSkill:
    name = escape_name(folder.name)
    mend = f"The folder {name} is no skill: {why}. An operator has to mend it."
    return FolderSkill(name=name, folder=str(folder), why=mend)


def _fields(head: str) -> dict[str, str]:
    """The fields of the front matter that are texts; lines that are moved in go on with one."""
    said: dict[str, str] = {}
    name = ""
    for line in head.splitlines():
        if field := _FIELD.fullmatch(line.rstrip()):
            name, value = field[1].lower(), field[2].strip()
            said[name] = "" if value in (">", "|", ">-", "|-") else value.strip("\"'")
        elif name and line[:1].isspace():
            said[name] = f"{said[name]} {line.strip()}".strip()
    return said


def _files(folder: Path) -> tuple[str, ...]:
    """Return the folder's other files; links are not followed."""
    root = Path(os.path.realpath(folder))
    found = islice(paths.walk(root, root, MAX_DEPTH), MAX_SEEN)
    names = (entry.path for entry in found if stat.S_ISREG(entry.info.st_mode))
    other = (name for name in names if Path(name).name != FILE and _is_legible(Path(name)))
    return tuple(sorted(other)[:MAX_FILES])


def _is_legible(path: Path) -> bool:
    """Return True if its name is text, as a journal requires."""
    return str(path).isascii() or "\ufffd" not in os.fsencode(path).decode("utf-8", "replace")


def _content(folder: Path, name: str) -> str:
    with paths.open_read(folder, name) as file:
        return _cut(file.read(4 * LONG).decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}\n[… cut]"
