"""`python -m tests.stories.drawing FOLDER [STORY or PLATFORM ...]`: pictures of each story on each
platform, on a desktop and on a phone, light and dark, and a contact sheet of each platform."""

import asyncio
import sys
from pathlib import Path

from tests.stories.drawing.telling import STORIES, draw_all
from tests.stories.surfaces.chat_stories import SURFACES


def main(arguments: list[str]) -> None:
    if arguments[0].startswith("-"):
        raise SystemExit(__doc__)
    folder = Path(arguments[0]).resolve()
    if folder.is_relative_to(Path(__file__).resolve().parents[3]):
        raise SystemExit(f"{folder} is in the repository: name a folder outside of it")
    folder.mkdir(parents=True, exist_ok=True)
    unknown = {*arguments[1:]} - {*STORIES, *SURFACES}
    if unknown:
        raise SystemExit(f"no story and no platform: {', '.join(sorted(unknown))}")
    names = [name for name in STORIES if name in arguments[1:]] or list(STORIES)
    platforms = [on for on in SURFACES if on in arguments[1:]] or list(SURFACES)
    asyncio.run(draw_all(folder, names, platforms))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
