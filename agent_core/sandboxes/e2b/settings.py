"""The settings of sandboxes by E2B; without its SDK, which is imported where it is used."""

from msgspec import Struct

from agent_core.config.declaration import Env, Setting
from agent_core.config.kinds import Url


class E2BAccess(Struct, frozen=True, kw_only=True):
    """The access to E2B; "" for the SDK's defaults."""

    api_key: str = ""
    api_url: str = ""
    sandbox_url: str = ""
    template: str = ""


API_KEY = Setting(
    "E2B_API_KEY",
    "",
    str,
    "API key for `SANDBOX_PROVIDER=e2b`, which needs the extra: `pip install 'turnkeeper[e2b]'`",
    secret="all",
)
API_URL = Setting(
    "E2B_API_URL",
    "",
    Url(),
    "URL of the E2B API, for self-hosting",
    default_text="E2B's own",
    secret="password",
)
SANDBOX_URL = Setting(
    "E2B_SANDBOX_URL",
    "",
    Url(),
    "one URL for all sandboxes, for self-hosting; by default each sandbox has its own",
    default_text="E2B's own",
    secret="password",
)
TEMPLATE = Setting(
    "E2B_TEMPLATE",
    "",
    str,
    "template of the sandboxes; requires python3, and bash for the tool `bash`",
    default_text="E2B's data template",
)
TABLE: tuple[Setting[object], ...] = (API_KEY, API_URL, SANDBOX_URL, TEMPLATE)


def read_e2b(env: Env) -> E2BAccess:
    """Read the settings of E2B."""
    return E2BAccess(
        api_key=API_KEY.read(env),
        api_url=API_URL.read(env),
        sandbox_url=SANDBOX_URL.read(env),
        template=TEMPLATE.read(env),
    )
