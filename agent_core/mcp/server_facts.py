"""Descriptions of servers in a list."""

from msgspec import Struct


class PromptFacts(Struct, frozen=True, kw_only=True):
    """A prompt. `required` and `optional`: names of its arguments."""

    name: str
    about: str = ""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


class ServerFacts(Struct, frozen=True, kw_only=True):
    """A server. `there`: it is connected; `tools`: their names at the server. `asks_sign_in`: who
    asks has to sign in first. `left_out`: of its lists, why by kind and name; `why`: why it is not
    there."""

    name: str
    there: bool
    tools: tuple[str, ...]
    prompts: tuple[PromptFacts, ...] = ()
    asks_sign_in: bool = False
    left_out: tuple[tuple[str, str], ...] = ()
    why: str = ""
