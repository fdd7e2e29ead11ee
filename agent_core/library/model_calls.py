"""The model calls of an agent used as a library: its model, and its prices."""

import asyncio

from msgspec.structs import replace

from agent_core.context.limits import SMALL_WINDOW, ContextLimits, limit_observed
from agent_core.errors import BudgetExceeded, Misuse, ModelFailed
from agent_core.models.catalog import WINDOW, cost, estimate_cost
from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta
from agent_core.models.provider_settings import PRICES
from agent_core.models.providers import ApiMode
from agent_core.models.tiers import AUXILIARY_PREFIX, DEMO, Models
from agent_core.settings import TIERS, ModelSettings, SettingsError

COMPRESSION = "compression"


class ModelCalls:
    """Answers by `model`: a provider, or a name that the environment's settings know. `window`:
    tokens that it holds, 0: as the catalogue or its server says. `budget`: dollars that a turn may
    take, None: as BUDGET_TURN_USD says. Raises SettingsError where the settings cannot work."""

    def __init__(
        self, model: Model | str, api_mode: ApiMode | None, window: int, budget: float | None
    ) -> None:
        settings = ModelSettings.read()
        self._own = None if isinstance(model, str) else model
        self._name = model if isinstance(model, str) else ""
        if api_mode is not None and self._name:
            provider = Models(settings).find_provider(self._name)
            settings = settings.with_mode(provider, api_mode)
        self.settings = settings
        self._models = Models(settings)
        self._window = window
        self._budget = settings.agent.limits.turn if budget is None else budget
        self._spent = self._reserved = 0.0
        self._picked: dict[str, tuple[Model, str]] = {}
        if self._models.demo and self._name not in ("", DEMO, *TIERS):
            self._refuse_demo()

    def _refuse_demo(self) -> None:
        """Raise SettingsError: the model has a name, and the demo model would pass for it."""
        provider, slash, model = self._name.partition("/")
        if not (provider and slash and model):
            raise SettingsError("model", self._name, "name a tier or provider/model.")
        self.settings.endpoint(provider, "model")

    def warm(self) -> None:
        """Import the SDK and make the client. Blocks."""
        self._pick(self._name)

    async def learn_window(self) -> None:
        """Ask the model's server for its window, if it is unknown."""
        if self._own is None and not self._window and not self._models.demo:
            await self._models.learn_windows()

    @property
    def window(self) -> int:
        """Tokens that the model holds, as far as is known."""
        if self._window or self._own is not None or self._models.demo:
            return self._window or WINDOW
        provider, _, model = self._models.describe(self._name).partition("/")
        return self._models.catalog.window(provider, model)

    @property
    def small(self) -> bool:
        """True if the window is so small that requests are kept short."""
        return self.window <= SMALL_WINDOW

    @property
    def most_observed(self) -> int:
        """Characters of a tool's result that it sees."""
        return limit_observed(self.window)

    @property
    def limits(self) -> ContextLimits:
        """The limits of a request."""
        own = COMPRESSION in self.settings.auxiliary
        tier = "flash" if self._name in TIERS else self._name
        by = f"{AUXILIARY_PREFIX}{COMPRESSION}" if own and self._own is None else tier
        return self.settings.context.make_limits(self.window, by)

    def begin(self, spent: float) -> None:
        """A turn begins that took so many dollars before."""
        self._spent, self._reserved = spent, 0.0

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The answer, with its price. Raises ModelFailed and BudgetExceeded."""
        wanted = name if name.startswith(AUXILIARY_PREFIX) or self._name in TIERS else self._name
        if wanted not in self._picked:
            await asyncio.to_thread(self._pick, wanted)
        model, known_as = self._picked[wanted]
        request = replace(request, model=known_as) if known_as else request
        reserved = self._reserve(model.provider, request)
        try:
            reply = await model.complete(request, on_delta)
        finally:
            self._reserved -= reserved
        if not isinstance(reply, ModelReply):
            raise Misuse(f"complete of a model returns a ModelReply, not {type(reply).__name__}")
        price = self._models.catalog.price(reply.provider, reply.model)
        price = price or self._models.catalog.price(reply.provider, request.model)
        paid = cost(reply.usage, price) if price is not None else None
        self._spent += paid or 0.0
        return replace(reply, usage=replace(reply.usage, cost=paid))

    async def close(self) -> None:
        """Close the connections."""
        self._picked = {}
        await self._models.close()
        if self._own is not None:
            await self._own.close()

    def _reserve(self, provider: str, request: ModelRequest) -> float:
        """Dollars set aside for the call, 0 without a limit."""
        if not self._budget:
            return 0.0
        price = self._models.catalog.price(provider, request.model)
        if price is None:
            mend = f"The price of {provider}/{request.model} is not known: set {PRICES.name}."
            raise ModelFailed(mend, "rejected")
        most = estimate_cost(request, price)
        if self._spent + self._reserved + most > self._budget:
            raise BudgetExceeded(f"The turn may take ${self._budget:.2f}, and that is used up.")
        self._reserved += most
        return most

    def _pick(self, name: str) -> None:
        picked = (self._own, "") if self._own is not None else self._models.pick(name)
        self._picked[name] = picked
