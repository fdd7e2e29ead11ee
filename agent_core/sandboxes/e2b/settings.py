"""The settings of sandboxes by E2B; without its SDK, which is imported where it is used."""

from msgspec import Struct

from agent_core.config.declaration import Env, Setting
from agent_core.config.kinds import Url


class E2BAccess(Struct, frozen=True, kw_only=True):
    """How E2B is reached; "" for what its SDK takes by itself."""

    api_key: str = ""
    api_url: str = ""
    sandbox_url: str = ""
    template: str = ""


API_KEY = Setting(
    "E2B_API_KEY",
    "",
    str,
    "for `SANDBOX_PROVIDER=e2b`, which needs the extra: `pip install 'turnkeeper[e2b]'`",
    secret="all",
)
API_URL = Setting(
    "E2B_API_URL",
    "",
    Url(),
    "the address of E2B's API, where it is not E2B's own",
    default_text="E2B's own",
    secret="password",
)
SANDBOX_URL = Setting(
    "E2B_SANDBOX_URL",
    "",
    Url(),
    "the address that all its sandboxes are reached at, where it is not one of E2B's for each",
    default_text="E2B's own",
    secret="password",
)
TEMPLATE = Setting(
    "E2B_TEMPLATE",
    "",
    str,
    "what its sandboxes are made of; it needs python3, and bash for the tool `bash`",
    default_text="E2B's with data libraries",
)
TABLE: tuple[Setting[object], ...] = (API_KEY, API_URL, SANDBOX_URL, TEMPLATE)


def read_e2b(env: Env) -> E2BAccess:
    """What is set."""
    return E2BAccess(
        api_key=API_KEY.read(env),
        api_url=API_URL.read(env),
        sandbox_url=SANDBOX_URL.read(env),
        template=TEMPLATE.read(env),
    )
