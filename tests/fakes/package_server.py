"""An index of Python packages, an npm registry and a git host in one, on loopback."""

import base64
import datetime
import hashlib
import http.server
import io
import ipaddress
import json
import ssl
import subprocess
import tarfile
import threading
import zipfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NAME = "turnkeeper-tests-greeting"
MODULE = "turnkeeper_tests_greeting"
WORDS = "good morning"
LARGE = bytes(range(250)) * 8_000


def list_installs(host: str) -> dict[str, str]:
    """Commands that get the package from `{at}`, an address of `host`, and print its WORDS."""
    return {
        "pip": "pip install -q --disable-pip-version-check --index-url http://{at}/simple/ "
        f"--trusted-host {host} {NAME} && python3 -c 'import {MODULE}; print({MODULE}.WORDS)'",
        "npm": f"npm install --no-audit --no-fund --registry http://{{at}}/ {NAME} && "
        f"node -e 'console.log(require(\"{NAME}\"))'",
        "git": f"git clone -q http://{{at}}/{NAME}.git && cat {NAME}/greeting.txt",
    }


class PackageServer:
    """Serves the package `NAME` to pip and npm, and as the repository `/NAME.git`; `/large` is
    `LARGE`. `asked`: the paths that were asked for. `certificate`: PEM, by whom `tls` is signed."""

    def __init__(self, folder: Path, address: str = "127.0.0.1", *, tls: bool = False) -> None:
        self.asked: list[str] = []
        self.certificate = ""
        self._scheme = "https" if tls else "http"
        self._files = {
            f"/simple/{NAME}/": self._index,
            f"/files/{MODULE}-1.0-py3-none-any.whl": _make_wheel,
            f"/{NAME}": self._registry,
            "/large": lambda host: (LARGE, "application/octet-stream"),
            f"/files/{NAME}-1.0.0.tgz": _make_tarball,
        }
        self._repository = folder / f"{NAME}.git"
        _make_repository(folder / "source", self._repository)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *words: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer((address, 0), Handler)
        if tls:
            self.certificate = _make_certificate(folder / "server.pem", address)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        self.asked.append(path)
        made = self._files.get(path)
        if made is not None:
            body, kind = made(request.headers["Host"])
        else:
            file = self._repository.parent / path.lstrip("/")
            if ".." in path or not file.is_file():
                request.send_error(404)
                return
            body, kind = file.read_bytes(), "application/octet-stream"
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _index(self, host: str) -> tuple[bytes, str]:
        name = f"{MODULE}-1.0-py3-none-any.whl"
        return f'<a href="{self._scheme}://{host}/files/{name}">{name}</a>'.encode(), "text/html"

    def _registry(self, host: str) -> tuple[bytes, str]:
        tarball = _make_tarball("")[0]
        digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        dist = {
            "tarball": f"{self._scheme}://{host}/files/{NAME}-1.0.0.tgz",
            "integrity": f"sha512-{digest}",
        }
        version = {"name": NAME, "version": "1.0.0", "main": "index.js", "dist": dist}
        said = {"name": NAME, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        return json.dumps(said).encode(), "application/json"


def _make_certificate(file: Path, address: str) -> str:
    """Write a key with a certificate for `address`, signed by itself, and return the latter."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    named = x509.IPAddress(ipaddress.ip_address(address))
    # npm compares with `localhost` what it reaches by an address and a proxy
    names = x509.SubjectAlternativeName([named, x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(secret + made.public_bytes(pem))
    return made.public_bytes(pem).decode()


def _make_wheel(host: str) -> tuple[bytes, str]:
    made = io.BytesIO()
    info = f"{MODULE}-1.0.dist-info"
    files = {
        f"{MODULE}.py": f"WORDS = {WORDS!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(made, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue(), "application/octet-stream"


def _make_tarball(host: str) -> tuple[bytes, str]:
    made = io.BytesIO()
    files = {
        "package/package.json": json.dumps({"name": NAME, "version": "1.0.0", "main": "index.js"}),
        "package/index.js": f"module.exports = {WORDS!r}\n",
    }
    with tarfile.open(fileobj=made, mode="w:") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue(), "application/octet-stream"


def _make_repository(source: Path, bare: Path) -> None:
    source.mkdir(parents=True)
    (source / "greeting.txt").write_text(f"{WORDS}\n")
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    for command in (
        ("git", "init", "-q", "-b", "main", str(source)),
        ("git", "-C", str(source), "add", "."),
        ("git", "-C", str(source), *who, "commit", "-q", "-m", "Greet"),
        ("git", "clone", "-q", "--bare", str(source), str(bare)),
        ("git", "-C", str(bare), "update-server-info"),
    ):
        subprocess.run(command, check=True, capture_output=True)
