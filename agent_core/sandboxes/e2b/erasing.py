"""Removes what E2B holds of a deleted workspace: its machine, paused or not, and its snapshot."""

from contextlib import suppress
from pathlib import Path

import msgspec

from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.e2b.state import BoxState, load_state


class BoxEraser:
    """With the key of `access`. Blocks; the SDK is imported when something is to be removed."""

    kind = "e2b"

    def __init__(self, access: E2BAccess) -> None:
        self._access = access

    def find(self, workspace: Path) -> str | None:
        """Return the name of the workspace's machine at E2B, None if there is none."""
        state = load_state(workspace)
        if not (state.box or state.snapshot):
            return None
        return msgspec.json.encode(BoxState(box=state.box, snapshot=state.snapshot)).decode()

    def erase(self, workspace: str, what: str) -> None:
        """Remove it, ignoring a missing one. OSError."""
        import e2b
        import httpx

        from agent_core.sandboxes.e2b.client import make_options

        state, options = msgspec.json.decode(what, type=BoxState), make_options(self._access)
        try:
            if state.box:
                with suppress(e2b.NotFoundException):
                    e2b.Sandbox.kill(state.box, **options)
            if state.snapshot:
                with suppress(e2b.NotFoundException):
                    e2b.Sandbox.delete_snapshot(state.snapshot, **options)
        except (
            e2b.SandboxException,
            e2b.AuthenticationException,
            e2b.ServiceBusyException,
            httpx.HTTPError,
        ) as error:
            raise OSError(f"E2B: {str(error).strip()[:200]}") from None
