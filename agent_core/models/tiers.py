"""Finds the model of a tier or an auxiliary work; the providers' clients, each created at first
use.

Importing an SDK takes one to two seconds: `warm` does it in a thread before the first call.
"""

import logging
import threading
from collections.abc import Callable, Iterable

from agent_core.config.declaration import SettingsError
from agent_core.models.catalog import Catalog
from agent_core.models.demo import DemoModel
from agent_core.models.fallback import Chain, Keys, Route
from agent_core.models.port import Model
from agent_core.models.prices.table import make_tables
from agent_core.models.provider_settings import CHAINS, FALLBACKS, MODELS
from agent_core.models.providers import Effort
from agent_core.settings import (
    AUXILIARY,
    TIERS,
    Endpoint,
    ModelSettings,
)

log = logging.getLogger("turnkeeper.models")

DEMO = "demo"
AUXILIARY_PREFIX = "auxiliary."
"""Begins the names of work that may have a chain of its own: `auxiliary.compression`."""


class Models:
    """The models that the settings name. Safe to warm in a thread while the loop runs. `reread`
    returns the current settings, for a key that is refused, and may raise SettingsError; None: they
    never change."""

    def __init__(
        self, settings: ModelSettings, reread: Callable[[], ModelSettings] | None = None
    ) -> None:
        self._settings = settings
        self._reread = reread or (lambda: settings)
        self._keys: dict[str, Keys] = {}
        self._chains: dict[tuple[str | None, ...], Model] = {}
        self._making = threading.RLock()
        self.catalog = Catalog(settings.prices, settings.windows, make_tables(settings.price_file))

    @property
    def demo(self) -> bool:
        """True if nothing is configured: the demo model answers."""
        return self._settings.empty

    def pick(self, name: str) -> tuple[Model, str]:
        """Return the client and the model's id for a tier, 'provider/model' or 'auxiliary.work'.
        The client falls back to the names after a comma in `name`, otherwise to those of the
        settings. Raises SettingsError."""
        provider, model, rest = self._resolve(name)
        effort = self._settings.effort(name.partition(",")[0], provider, model)
        return self._chain(provider, rest, effort), model

    def describe(self, tier: str) -> str:
        """The model behind `tier`, as people see it."""
        provider, model, _ = self._resolve(tier)
        return "demo model (scripted, no key set)" if provider == DEMO else f"{provider}/{model}"

    def find_provider(self, name: str) -> str:
        """Return the provider that serves `name` first; raises SettingsError."""
        return self._resolve(name)[0]

    def check(self) -> None:
        """Raise SettingsError if a tier or a chain cannot work; costs no import and no call."""
        for tier in TIERS:
            provider, *_ = self._resolve(tier)
            if provider != DEMO:
                self._settings.endpoint(provider, MODELS[tier].name)
        chains = {FALLBACKS.name: self._settings.fallbacks}
        chains |= {CHAINS[work].name: chain for work, chain in self._settings.auxiliary.items()}
        for setting, chain in chains.items():
            for name in chain:
                self._settings.endpoint(name.partition("/")[0], setting)

    def warm(self) -> None:
        """Import the SDKs and make the clients of all tiers. Blocks: call it in a thread."""
        for tier in TIERS:
            self.pick(tier)

    async def learn_windows(self, names: Iterable[str] = TIERS) -> bool:
        """Ask servers for unknown windows of the models behind `names`. Return True if one will
        tell more once it has answered a request."""
        from agent_core.models.windows import ask_windows

        named = {self._resolve(tier)[:2] for tier in names}
        wanted = [
            (self._settings.endpoint(provider), model)
            for provider, model in sorted(named)
            if provider != DEMO and not self.catalog.knows_window(provider, model)
        ]
        found = await ask_windows(wanted)
        for (provider, model), held in found.items():
            self.catalog.note_window(provider, model, held.tokens, held.trained)
            about = {"model": f"{provider}/{model}", "tokens": held.tokens, "sure": held.sure}
            log.info("window", extra=about)
        return any(not held.sure for held in found.values())

    async def close(self) -> None:
        """Close all connections."""
        known, self._keys, self._chains = self._keys, {}, {}
        for keys in known.values():
            await keys.close()

    def _resolve(self, name: str) -> tuple[str, str, tuple[str, ...]]:
        """Provider, model, and the models to go on with."""
        if self.demo:
            return DEMO, DEMO, ()
        name, *own_rest = name.split(",")
        rest = tuple(own_rest) or self._settings.fallbacks
        if name.startswith(AUXILIARY_PREFIX):
            work = name.removeprefix(AUXILIARY_PREFIX)
            if work not in AUXILIARY:
                raise SettingsError("model", name, f"name one of: {', '.join(AUXILIARY)}.")
            own = self._settings.auxiliary.get(work)
            name, rest = (own[0], own[1:]) if own else ("flash", rest)
        if name in TIERS:
            choice = self._settings.choice(name)
            if not choice:
                mend = "no provider has a model for it; set provider/model."
                raise MODELS[name].error("", mend)
            provider, model = choice
        else:
            provider, slash, model = name.partition("/")
            if not (provider and slash and model):
                raise SettingsError("model", name, "name a tier or provider/model.")
        return provider, model, tuple(one for one in rest if one != f"{provider}/{model}")

    def _chain(self, provider: str, rest: tuple[str, ...], effort: Effort | None) -> Model:
        """Return the client of `provider` that falls back to `rest`; its first own client is
        created here."""
        with self._making:
            place = (effort, provider, *rest)
            if place not in self._chains:
                self._chains[place] = self._make(provider, rest, effort)
            return self._chains[place]

    def _make(self, provider: str, rest: tuple[str, ...], effort: Effort | None) -> Model:
        if provider == DEMO:
            return DemoModel()
        first = self._keys_of(provider)
        first.client(first.endpoints[0])
        routes = [Route(first, "")]
        for name in rest:
            other, _, model = name.partition("/")
            routes.append(Route(self._keys_of(other), model))
        return Chain(tuple(routes), effort, self.catalog)

    def _keys_of(self, provider: str) -> Keys:
        if provider not in self._keys:
            endpoints = self._settings.endpoints(provider, "model")

            def reread() -> tuple[Endpoint, ...]:
                return self._reread().endpoints(provider, "model")

            self._keys[provider] = Keys(endpoints, self._connect, reread)
        return self._keys[provider]

    def _connect(self, endpoint: Endpoint) -> Model:
        return _connect(endpoint, self.catalog)


def _connect(endpoint: Endpoint, catalog: Catalog) -> Model:
    match endpoint.api_mode:
        case "anthropic_messages":
            from agent_core.models.anthropic_messages import AnthropicMessages

            return AnthropicMessages(endpoint)
        case "codex_responses":
            from agent_core.models.openai_responses import OpenAIResponses

            return OpenAIResponses(endpoint)
        case "generate_content":
            return _google(endpoint)
        case "ollama_chat":
            from agent_core.models.ollama.client import OllamaChat

            return OllamaChat(endpoint, catalog)
        case "chat_completions" if endpoint.own_server:
            from agent_core.models.ollama.client import OwnServerChat

            return OwnServerChat(endpoint, catalog)
        case "chat_completions":
            from agent_core.models.openai_chat import OpenAIChat

            return OpenAIChat(endpoint)


def _google(endpoint: Endpoint) -> Model:
    try:
        from agent_core.models.google.client import Gemini
    except ImportError:
        mend = "needs the extra gemini: pip install 'turnkeeper[gemini]'."
        raise SettingsError("api_mode", "generate_content", mend) from None
    return Gemini(endpoint)
