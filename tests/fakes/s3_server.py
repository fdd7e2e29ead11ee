"""A bucket on loopback that speaks as much of S3's protocol as snapshots need, and checks who asks."""

import base64
import hashlib
import hmac
import re
from urllib.parse import quote, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from aiohttp import web

KEY_ID, SECRET, REGION = "tests", "a-secret-of-the-tests", "eu-test-1"
PAGE = 3
"""Names in one answer to a list: few, so that there are several."""
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=(\S+), ?SignedHeaders=(\S+), ?Signature=(\w+)")


class S3Server:
    """`objects`: what is stored, by bucket and name. `asked`: methods and paths."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.fails = 0
        """The status that all requests get, 0 for none."""
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def names(self, part: str = "") -> list[str]:
        return sorted(name for name in self.objects if part in name)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        if self.fails:
            return _fail(self.fails, "Refused")
        body = await request.read()
        if not _is_signed(request, body):
            return _fail(403, "SignatureDoesNotMatch")
        name = unquote(request.raw_path.partition("?")[0]).removeprefix("/")
        if request.method == "PUT":
            self.objects[name] = body
            return web.Response(headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        if request.method == "POST" and "delete" in request.query:
            return self._delete(name, body)
        if request.method == "DELETE":
            self.objects.pop(name, None)
            return web.Response(status=204)
        if "list-type" in request.query:
            return self._list(name, request)
        if name not in self.objects:
            return _fail(404, "NoSuchKey")
        headers = {
            "ETag": f'"{hashlib.md5(self.objects[name]).hexdigest()}"',
            "Last-Modified": "Wed, 25 Nov 2026 03:00:00 GMT",
        }
        return web.Response(body=self.objects[name], headers=headers)

    def _delete(self, bucket: str, body: bytes) -> web.Response:
        keys = [
            str(one.text) for one in ElementTree.fromstring(body).iter() if one.tag.endswith("Key")
        ]
        for key in keys:
            self.objects.pop(f"{bucket.strip('/')}/{key}", None)
        said = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return _xml(f"<DeleteResult>{said}</DeleteResult>")

    def _list(self, bucket: str, request: web.Request) -> web.Response:
        top, prefix = f"{bucket.strip('/')}/", request.query.get("prefix", "")
        found = [
            name.removeprefix(top)
            for name in sorted(self.objects)
            if name.startswith(f"{top}{prefix}")
        ]
        after = base64.b64decode(request.query.get("continuation-token", "")).decode()
        left = [name for name in found if name > after]
        page, more = left[:PAGE], len(left) > PAGE
        rows = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[top + name])}</Size>"
            "<LastModified>2026-11-25T03:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for name in page
        )
        token = base64.b64encode(page[-1].encode()).decode() if more else ""
        next_ = f"<NextContinuationToken>{token}</NextContinuationToken>" if more else ""
        truncated = str(more).lower()
        return _xml(
            f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{next_}{rows}"
            "</ListBucketResult>"
        )


def _xml(text: str) -> web.Response:
    return web.Response(text=f'<?xml version="1.0"?>{text}', content_type="application/xml")


def _fail(status: int, code: str) -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")


def _is_signed(request: web.Request, body: bytes) -> bool:
    """The request bears the signature that AWS Signature Version 4 gives it."""
    found = _SIGNED.match(request.headers.get("Authorization", ""))
    if found is None:
        return False
    credential, names, signature = found.groups()
    key_id, day, region, service, _ = credential.split("/")
    hashed = request.headers["x-amz-content-sha256"]
    if hashed != "UNSIGNED-PAYLOAD" and hashed != hashlib.sha256(body).hexdigest():
        return False
    pairs = sorted(request.query.items())
    query = "&".join(f"{quote(name, safe='-_.~')}={quote(v, safe='-_.~')}" for name, v in pairs)
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
    path = request.raw_path.partition("?")[0]
    asked = "\n".join((request.method, path, query, headers, names, hashed))
    scope = f"{day}/{region}/{service}/aws4_request"
    said = "\n".join(
        (
            "AWS4-HMAC-SHA256",
            request.headers["x-amz-date"],
            scope,
            hashlib.sha256(asked.encode()).hexdigest(),
        )
    )
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    good = hmac.digest(key, said.encode(), "sha256").hex()
    return (key_id, region) == (KEY_ID, REGION) and hmac.compare_digest(good, signature)
