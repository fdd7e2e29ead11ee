"""The address, key and API of a provider."""

from dataclasses import dataclass, field

from agent_core.models.providers import NUM_CTX, TIMEOUT, ApiMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A provider's address and API. `timeout` in seconds without a byte."""

    provider: str
    base_url: str
    api_key: str = field(repr=False)
    key_setting: str = "the API key"
    """The setting to check if the key is refused."""
    timeout: float = TIMEOUT
    retries: int = 2
    """Tries after the first one, of all kinds together."""
    cache_key: bool | None = None
    """Send `prompt_cache_key`; None: only to OpenAI itself, others may refuse it."""
    thinking: bool | None = None
    """Ask for visible reasoning; None: say nothing about it."""
    api_mode: ApiMode = "chat_completions"
    own_server: bool = False
    """An address of the operator's own without a set API: it may be Ollama."""
    num_ctx: int = NUM_CTX
    """The window requested from Ollama's models, in tokens; 0: the server's default."""
