"""All settings of the agent, by the tables of the documentation."""

from agent_core.config.declaration import merge_tables
from agent_core.context import settings as context
from agent_core.guardrails import settings as guardrails
from agent_core.memory import settings as memory
from agent_core.models import provider_settings as models
from agent_core.orchestration import settings as orchestration
from agent_core.skills.images import settings as images
from agent_core.tools import tool_settings as tools
from agent_core.tools.web import settings as web

TABLES = merge_tables(
    tools.TABLES,
    web.TABLES,
    images.TABLES,
    orchestration.TABLES,
    guardrails.TABLES,
    context.TABLES,
    memory.TABLES,
    models.TABLES,
)
