"""An index of the packages that are installed on this machine, on loopback: for pip those beside the
tests, packed as wheels again, for npm a folder of modules."""

import base64
import hashlib
import http.server
import importlib.metadata
import io
import json
import os
import re
import subprocess
import tarfile
import threading
import zipfile
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ADDRESS = "127.0.0.2"
"""Loopback, and not what programs reach without the proxy."""


def find_modules(name: str) -> Path | None:
    """The folder of modules that holds the npm package `name`, its dependencies beside it or in it:
    one of NODE_PATH, of the system, or of `npm install -g`."""
    places = [*os.environ.get("NODE_PATH", "").split(":"), "/usr/share/nodejs"]
    try:
        asked = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=True)
        places.append(asked.stdout.strip())
    except (OSError, subprocess.CalledProcessError):
        pass
    for place in filter(None, places):
        if (Path(place) / name / "package.json").is_file():
            return Path(place)
    return None


class InstalledPackages:
    """Serves them until `close`. `modules`: the folder for npm, `root`: the package in it that may
    have the others inside."""

    def __init__(self, modules: Path | None = None, root: str = "") -> None:
        self._modules, self._root = modules, root
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self)

            def log_message(self, *words: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer((ADDRESS, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def place(self) -> str:
        return f"{ADDRESS}:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = unquote(request.path.partition("?")[0])
        try:
            if path.startswith("/simple/"):
                body, kind = self._list_wheel(path.split("/")[2]), "text/html"
            elif path.startswith("/wheels/"):
                body, kind = pack_wheel(path.split("/")[2]), "application/octet-stream"
            elif path.startswith("/tarballs/"):
                name = path.removeprefix("/tarballs/").removesuffix(".tgz")
                body, kind = pack_module(self._find(name)), "application/octet-stream"
            else:
                body, kind = self._describe(path.lstrip("/")), "application/json"
        except (importlib.metadata.PackageNotFoundError, FileNotFoundError):
            return request.send_error(404)
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
        return None

    def _list_wheel(self, name: str) -> bytes:
        file = _name_wheel(name)
        return f'<a href="http://{self.place}/wheels/{name}/{file}">{file}</a>'.encode()

    def _find(self, name: str) -> Path:
        if self._modules is None:
            raise FileNotFoundError(name)
        inside = self._modules / self._root / "node_modules" / name
        return inside if inside.is_dir() else self._modules / name

    def _describe(self, name: str) -> bytes:
        folder = self._find(name)
        about = _read_manifest(folder)
        digest = base64.b64encode(hashlib.sha512(pack_module(folder)).digest()).decode()
        dist = {
            "tarball": f"http://{self.place}/tarballs/{name}.tgz",
            "integrity": f"sha512-{digest}",
        }
        version = about["version"]
        versions = {version: about | {"dist": dist}}
        said = {"name": name, "dist-tags": {"latest": version}, "versions": versions}
        return json.dumps(said).encode()


def _name_wheel(name: str) -> str:
    found = importlib.metadata.distribution(name)
    (tag, *_) = re.findall(r"^Tag: (.+)$", found.read_text("WHEEL") or "", re.MULTILINE)
    return f"{_find_info(found).removesuffix('.dist-info')}-{tag}.whl"


def _find_info(found: importlib.metadata.Distribution) -> str:
    tops = {file.parts[0] for file in found.files or ()}
    (info,) = {one for one in tops if one.endswith(".dist-info")}
    return info


@cache
def pack_wheel(name: str) -> bytes:
    """The installed package as a wheel, without its programs."""
    found = importlib.metadata.distribution(name)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as wheel:
        for file in found.files or ():
            outside = ".." in file.parts or file.suffix == ".pyc" or file.name == "RECORD"
            if not outside and file.name not in ("INSTALLER", "REQUESTED", "direct_url.json"):
                wheel.writestr(zipfile.ZipInfo(str(file)), file.read_binary())
        names = wheel.namelist()
        record = f"{_find_info(found)}/RECORD"
        listed = "".join(f"{one},,\n" for one in (*names, record))
        wheel.writestr(zipfile.ZipInfo(record), listed)
    return made.getvalue()


def _read_manifest(folder: Path) -> dict[str, object]:
    """Of what it needs any version will do: there is one of each."""
    about = json.loads((folder / "package.json").read_text())
    kept = {name: about[name] for name in ("name", "version", "main", "exports") if name in about}
    return kept | {"dependencies": dict.fromkeys(about.get("dependencies", {}), "*")}


@cache
def pack_module(folder: Path) -> bytes:
    """The module as npm packs it, without the modules in it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            below = path.relative_to(folder)
            if "node_modules" not in below.parts and path.is_file():
                tar.add(path, f"package/{below}")
    return made.getvalue()
