"""The frameworks for apps: initial files, and commands to install and start. Data."""

from collections.abc import Callable
from typing import Literal, get_args

import msgspec
from msgspec import Struct

Framework = Literal["React", "Next.js", "Vue", "Express", "FastAPI", "Flask", "static"]
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
MANIFEST = "turnkeeper-app.json"
"""The file that describes a project."""


class Stack(Struct, frozen=True, kw_only=True):
    """`files`: the initial files of a project with this name. `install` and `start` run in its
    folder; {packages} and {port} are filled in. `about`: instructions for the model that writes the
    rest."""

    about: str
    install: str
    start: str
    port: int
    files: Callable[[str], dict[str, str]]


class AppManifest(Struct, frozen=True, kw_only=True):
    """The description of a project."""

    name: str
    framework: Framework


def manifest(name: str, framework: Framework) -> str:
    """The manifest's text."""
    made = msgspec.json.encode(AppManifest(name=name, framework=framework))
    return msgspec.json.format(made, indent=2).decode() + "\n"


_NPM = "npm install --no-audit --no-fund {packages}"
_PIP = (
    "python3 -m venv .venv && "
    ".venv/bin/python -m pip install --quiet -r requirements.txt {packages}"
)


def _node(
    scripts: dict[str, str], needs: tuple[str, ...], develops: tuple[str, ...] = ()
) -> Callable[[str], dict[str, str]]:
    def files(name: str) -> dict[str, str]:
        package = {
            "name": name,
            "private": True,
            "version": "0.1.0",
            "type": "module",
            "scripts": scripts,
            "dependencies": dict.fromkeys(needs, "latest"),
            "devDependencies": dict.fromkeys(develops, "latest"),
        }
        text = msgspec.json.format(msgspec.json.encode(package), indent=2).decode()
        return {"package.json": f"{text}\n"}

    return files


def _vite(plugin: str, call: str, page: str) -> Callable[[str], dict[str, str]]:
    kind = "react" if call == "react" else "vue"
    needs = ("react", "react-dom") if kind == "react" else ("vue",)
    scripts = {"dev": "vite", "build": "vite build"}

    def files(name: str) -> dict[str, str]:
        return {
            **_node(scripts, needs, ("vite", plugin))(name),
            "vite.config.js": (
                'import { defineConfig } from "vite";\n'
                f'import {call} from "{plugin}";\n\n'
                f"export default defineConfig({{ plugins: [{call}()] }});\n"
            ),
            "index.html": (
                '<!doctype html>\n<html>\n  <head>\n    <meta charset="utf-8" />\n'
                f"    <title>{name}</title>\n  </head>\n"
                f'  <body>\n    <div id="app"></div>\n'
                f'    <script type="module" src="/{page}"></script>\n  </body>\n</html>\n'
            ),
        }

    return files


def _python(*needs: str) -> Callable[[str], dict[str, str]]:
    return lambda name: {"requirements.txt": "\n".join(needs) + "\n"}


STACKS: dict[Framework, Stack] = {
    "React": Stack(
        about="React with Vite. src/main.jsx renders into #app; components in src/.",
        install=_NPM,
        start="npm run dev -- --host 127.0.0.1 --port {port}",
        port=5173,
        files=_vite("@vitejs/plugin-react", "react", "src/main.jsx"),
    ),
    "Next.js": Stack(
        about="Next.js with the app router: app/layout.jsx and app/page.jsx.",
        install=_NPM,
        start="npm run dev -- --hostname 127.0.0.1 --port {port}",
        port=3000,
        files=_node({"dev": "next dev", "build": "next build"}, ("next", "react", "react-dom")),
    ),
    "Vue": Stack(
        about="Vue 3 with Vite. src/main.js mounts on #app; components in src/.",
        install=_NPM,
        start="npm run dev -- --host 127.0.0.1 --port {port}",
        port=5173,
        files=_vite("@vitejs/plugin-vue", "vue", "src/main.js"),
    ),
    "Express": Stack(
        about="Express, ES modules. server.js listens on process.env.PORT at 127.0.0.1.",
        install=_NPM,
        start="env PORT={port} npm start",
        port=3000,
        files=_node({"start": "node server.js"}, ("express",)),
    ),
    "FastAPI": Stack(
        about="FastAPI. main.py has the application `app`.",
        install=_PIP,
        start=".venv/bin/python -m uvicorn main:app --host 127.0.0.1 --port {port}",
        port=8000,
        files=_python("fastapi", "uvicorn"),
    ),
    "Flask": Stack(
        about="Flask. main.py has the application `app`; templates/ and static/ as usual.",
        install=_PIP,
        start=".venv/bin/python -m flask --app main:app run --host 127.0.0.1 --port {port}",
        port=5000,
        files=_python("flask"),
    ),
    "static": Stack(
        about="Plain HTML, CSS and JavaScript without packages: index.html and what it loads.",
        install="",
        start="python3 -m http.server {port} --bind 127.0.0.1",
        port=8080,
        files=lambda name: {},
    ),
}


def starter_files(name: str, framework: Framework) -> dict[str, str]:
    """The files that a project begins with, by their paths in it."""
    return {MANIFEST: manifest(name, framework), **STACKS[framework].files(name)}
