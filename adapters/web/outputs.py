"""Files that the agent sent: found below one folder, delivered so that a browser runs none."""

from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from adapters.web.gate import RequestRefused
from gateway.views import MediaFile

GONE = "The file is no longer kept. Ask for it again."


class Outputs:
    """The folder of sent files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, ref: str) -> Path:
        """Return the file of `ref`, a path below the folder; refused if there is none. No link
        leads out of the folder."""
        try:
            root = self._folder.resolve()
            path = (root / ref).resolve()
            if path.is_relative_to(root) and path.is_file():
                return path
        except (OSError, ValueError):
            pass
        raise RequestRefused(404, GONE)


def make_file_response(file: MediaFile, path: Path) -> web.FileResponse:
    """The answer that holds `file`. Only the four kinds of pictures are shown in the page: all
    else (a drawing as SVG, a page as HTML) is a download of bytes without a kind."""
    way = "inline" if file.picture else "attachment"
    return web.FileResponse(
        path,
        headers={
            "Content-Type": file.mime if file.picture else "application/octet-stream",
            "Content-Disposition": f"{way}; filename*=UTF-8''{quote(file.name, safe='')}",
            "Cache-Control": "private, max-age=86400, immutable",
        },
    )
