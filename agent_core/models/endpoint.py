"""Where a provider is called, and with what."""

from dataclasses import dataclass, field

from agent_core.models.providers import NUM_CTX, TIMEOUT, ApiMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a provider is and how it is spoken to. `timeout` is in seconds without a byte."""

    provider: str
    base_url: str
    api_key: str = field(repr=False)
    key_setting: str = "the API key"
    """What a person has to look at when the key is refused."""
    timeout: float = TIMEOUT
    retries: int = 2
    """Tries after the first one, of all kinds together."""
    cache_key: bool | None = None
    """Send `prompt_cache_key`; None: only to OpenAI itself, others may refuse it."""
    thinking: bool | None = None
    """Ask for visible reasoning; None: say nothing about it."""
    api_mode: ApiMode = "chat_completions"
    own_server: bool = False
    """At an address of the operator's own, and nobody said what it speaks: it may be Ollama."""
    num_ctx: int = NUM_CTX
    """Tokens that Ollama's models are asked to hold; 0: what the server gives them."""
