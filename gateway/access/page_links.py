"""Single-use links from a chat that sign in to the page, as the account that stands for the chat's.

That account is named after the chat's (`telegram.123`), is linked with it, and has its rights while
both are linked (`Access.learn`). The store keeps a hash of one link for each account, so only the
newest link works.
"""

import logging

import msgspec
from msgspec import Struct

from agent_core import ambient
from gateway.access.access import Access, find_page_account
from gateway.access.codes import hash_secret, is_secret_of, load_document
from gateway.access.linking import DirectoryLinking
from gateway.messages import Sender
from gateway.ports import NoteAudit
from gateway.roles import at_least
from gateway.store.port import Directory
from gateway.texts import say

log = logging.getLogger("turnkeeper.page_links")

LASTS = 600.0
"""Seconds for which a link is valid."""
KIND = "pagelink:"


class PageLink(Struct, frozen=True, kw_only=True):
    """The document `pagelink:web:<name>`: the hash of a link's secret, and how long it is good."""

    digest: str
    until: float


class DirectoryPageLinks:
    """services.PageLinks over the directory. `base`: the page's address, with a slash at its end;
    `public`: it leads there from elsewhere too."""

    def __init__(  # noqa: PLR0913 - a part each
        self,
        access: Access,
        linking: DirectoryLinking,
        directory: Directory,
        note: NoteAudit,
        base: str,
        *,
        public: bool,
    ) -> None:
        self._access, self._linking = access, linking
        self._directory, self._note = directory, note
        self._base, self._public = base, public

    async def offer(self, sender: Sender) -> str:
        """Link the sender with the account of the page and say how to sign in with it."""
        language = sender.language
        if not find_page_account(sender.key):
            return say("page_here", language)
        name = await self._choose(sender)
        if not name:
            return self._linking.say_full(language)
        secret = ambient.secret_id()
        link = PageLink(digest=hash_secret(secret), until=ambient.now() + LASTS)
        await self._directory.put(f"{KIND}web:{name}", msgspec.json.encode(link))
        log.info("page_link_made", extra={"account": sender.key})
        await self._note(sender.key, "page_link", f"web:{name}")
        url = f"{self._base}enter/{name}.{secret}"
        return say("page_link" if self._public else "page_link_here", language, link=url)

    async def _choose(self, sender: Sender) -> str:
        """Return the person's account of the page: an existing one if it has no more rights than
        the sender, otherwise the sender's own; "" if they have too many accounts."""
        role = await self._access.learn(sender)
        for key in sorted(await self._access.accounts(sender.key)):
            platform, _, name = key.partition(":")
            there = await self._access.learn(Sender(platform="web", id=name))
            if platform == "web" and there is not None and at_least(role, there):
                return name
        name = find_page_account(sender.key)
        return name if await self._linking.adopt(sender.key, f"web:{name}") else ""

    async def redeem(self, token: str) -> str:
        """Use the link up and return its person on the page; "" if it is not valid."""
        name, _, secret = token.rpartition(".")
        key = f"{KIND}web:{name}"
        link, body = await load_document(self._directory, key, PageLink)
        if link is None or body is None or link.until <= ambient.now():
            return ""
        if not is_secret_of(link.digest, secret):
            return ""
        return name if await self._directory.put(key, None, body) else ""
