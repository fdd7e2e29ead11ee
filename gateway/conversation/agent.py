"""The agent as a session sees it: it makes a turn's brief and its toolbox."""

from pathlib import Path
from typing import Protocol

from agent_core.events import OutputAdded
from agent_core.mcp.oauth.grants import SignInOffer
from agent_core.mcp.server_facts import ServerFacts
from agent_core.messages import Mention, Message, Picture
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.policy import Mode
from agent_core.scope import Scope
from gateway.messages import Conversation, Sender
from gateway.services.ledger import Payer
from gateway.store.rows import ConversationSettings, Rule


class PolicyContext(Protocol):
    """Live context that the policy reads while a turn runs."""

    conversation: Conversation

    def settings(self) -> ConversationSettings:
        """The conversation's settings, as of now."""

    def payer(self) -> Payer:
        """The account charged for the turn's model calls, and its spending so far."""

    async def find_accounts(self) -> tuple[str, ...]:
        """The keys of all accounts of the person whom the turn works for. StoreFailed."""

    def sender(self) -> Sender:
        """The person whose message started the turn, or whose job it is."""

    def asker(self) -> tuple[str, str]:
        """(sender key, role) of the person whose message started the turn, the role as last
        read."""

    def rules(self) -> tuple[Rule, ...]:
        """The person's standing rules, as last read."""

    async def refresh(self) -> None:
        """Read the person's role and rules anew. StoreFailed."""

    def output(self, event: OutputAdded) -> None:
        """Live output of a running tool."""


class ServerDirectory(Protocol):
    """The servers of tools, as people meet them."""

    async def list_servers(self, where: Conversation, sender: Sender) -> tuple[ServerFacts, ...]:
        """Return the configured servers as the sender reaches them, after a short wait for their
        start."""

    async def offer_sign_in(
        self, server: str, where: Conversation, sender: Sender
    ) -> SignInOffer | None:
        """A way to sign in at the server; None if people do not sign in there. StoreFailed."""

    def sign_out(self, server: str, sender: Sender) -> bool:
        """Forget the sender's sign-in at the server. Return False if there is none."""


class TurnMaker(Protocol):
    """Makes turns for conversations."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        """Make the brief of a turn, which is recorded at its start."""

    def workspace(self, conversation: Conversation) -> Path:
        """The conversation's own folder."""

    def find_mentions(self, texts: tuple[str, ...]) -> tuple[Mention, ...]:
        """Find the server resources (`@…`) and prompts that people name."""

    @property
    def server_directory(self) -> ServerDirectory:
        """The servers of tools."""

    def picture(self, conversation: Conversation, path: str) -> Picture | None:
        """The file `path` of the workspace, kept as it is now, if a model can be shown it. Blocks.
        OSError if it cannot be kept."""

    def permission(
        self, conversation: Conversation, settings: ConversationSettings, asker: tuple[str, str]
    ) -> Mode:
        """The mode in force for the turns of this person, a sender key and a role."""

    def model_name(self, settings: ConversationSettings) -> str:
        """The model in use, in words."""

    async def list_models(self) -> tuple[str, ...]:
        """The tiers, then models that the providers which are set list, by provider/model."""

    async def check_model(self, name: str, language: str) -> str:
        """Return the reason why `name` cannot be used, "" if it can; asks its provider for its
        models."""

    def list_missing(self, profile: str) -> tuple[str, ...]:
        """Tools that a profile is made for and that are not here."""

    def why_unusable(self, mode: str) -> str:
        """Return the reason why the skill of `mode` cannot be used here, "" if it can or there is
        none."""

    def hands(self, circumstances: PolicyContext) -> Hands:
        """Models, tools and policy for a turn."""

    def holds(self, turn: str) -> bool:
        """Return True if the parked turn still holds a script or a server call in this process."""

    def end_turn(self, turn: str) -> None:
        """Release what the finished turn holds."""

    def tidy(self, before: float) -> int:
        """Remove kept files made before `before` (seconds since 1970); how many. Blocks."""

    async def code(
        self,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        history: tuple[Message, ...],
        past: tuple[Message, ...],
    ) -> TurnResult:
        """The turn's code over its scope."""
