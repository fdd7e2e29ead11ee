"""The models, profiles and tool sets that a job may use."""

from agent_core.config.declaration import SettingsError
from agent_core.models.tiers import Models
from agent_core.profiles.built_in import PROFILES
from agent_core.settings import TIERS, ModelSettings
from agent_core.tools.finding.toolsets import BUILT_IN
from gateway.features.jobs.deps import Fits
from gateway.jobs_port import JobRequest


def find_missing_means(settings: ModelSettings) -> Fits:
    """Return a function that finds names in a request that `settings` do not have."""
    models, sets = Models(settings), sorted({*settings.tools.sets.sets, *BUILT_IN})

    def find(wish: JobRequest) -> tuple[str, str]:
        if wish.profile and wish.profile.strip().lower() not in PROFILES:
            return "profile", ", ".join(PROFILES)
        if wish.tools and wish.tools.strip() not in sets:
            return "tools", ", ".join(sets)
        try:
            for name in filter(None, wish.model.split(",")):
                provider = models.find_provider(name.strip())
                if not models.demo:
                    settings.endpoint(provider)
        except SettingsError:
            return "model", ", ".join((*TIERS, *(f"{one}/…" for one in settings.configured)))
        return "", ""

    return find
