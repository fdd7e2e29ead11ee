"""Which model serves a tier; the providers' clients, made once and only when needed.

Importing an SDK takes one to two seconds: `warm` does it in a thread before the first call.
"""

import threading

from agent_core.models.demo import DemoModel
from agent_core.models.port import Model
from agent_core.settings import TIERS, Endpoint, ModelSettings, SettingsError

DEMO = "demo"


class Models:
    """The models that the settings name. Safe to warm in a thread while the loop runs."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._clients: dict[str, Model] = {}
        self._making = threading.Lock()

    @property
    def demo(self) -> bool:
        """True if nothing is configured: the demo model answers."""
        return self._settings.empty

    def pick(self, name: str) -> tuple[Model, str]:
        """The client and the model's id for a tier or 'provider/model'; raises SettingsError."""
        provider, model = self._resolve(name)
        return self._client(provider), model

    def describe(self, tier: str) -> str:
        """The model behind `tier`, as people see it."""
        provider, model = self._resolve(tier)
        return "demo model (scripted, no key set)" if provider == DEMO else f"{provider}/{model}"

    def check(self) -> None:
        """Raise SettingsError if a tier cannot work; costs no import and no call."""
        for tier in TIERS:
            provider, _ = self._resolve(tier)
            if provider != DEMO:
                self._settings.endpoint(provider, f"{tier.upper()}_MODEL")

    def warm(self) -> None:
        """Import the SDKs and make the clients of all tiers. Blocks: call it in a thread."""
        for tier in TIERS:
            self.pick(tier)

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    def _resolve(self, name: str) -> tuple[str, str]:
        if self.demo:
            return DEMO, DEMO
        if name not in TIERS:
            provider, slash, model = name.partition("/")
            if not (provider and slash and model):
                raise SettingsError("model", name, "name a tier or provider/model.")
            return provider, model
        choice = self._settings.choice(name)
        if not choice:
            mend = "no provider has a model for it; set provider/model."
            raise SettingsError(f"{name.upper()}_MODEL", "", mend)
        return choice

    def _client(self, provider: str) -> Model:
        with self._making:
            if provider not in self._clients:
                self._clients[provider] = self._make(provider)
            return self._clients[provider]

    def _make(self, provider: str) -> Model:
        if provider == DEMO:
            return DemoModel()
        return _connect(self._settings.endpoint(provider, "model"))


def _connect(endpoint: Endpoint) -> Model:
    if endpoint.api_mode == "anthropic_messages":
        from agent_core.models.anthropic_messages import AnthropicMessages

        return AnthropicMessages(endpoint)
    from agent_core.models.openai_chat import OpenAIChat

    return OpenAIChat(endpoint)
