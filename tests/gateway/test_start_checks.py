"""Doctor names all that a start would refuse, each part by itself."""

from pathlib import Path

from agent_core.settings import ModelSettings
from gateway.features.jobs.hooks import ADDRESS
from gateway.services.vault import Vault
from gateway.settings import Settings
from gateway.wiring.start_checks import find_faults

WRONG = {
    "COMMAND_RIGHTS": {"COMMAND_RIGHTS": "nosuch=admin"},
    "MODEL_PRICES": {
        "OPENAI_API_KEY": "sk-x",
        "PRO_MODEL": "openai/unheard-of",
        "BUDGET_DAY_USD": "1",
    },
}


def find(home: Path, **env: str) -> list[str]:
    given = {"TURNKEEPER_HOME": str(home), **env}
    settings = Settings.read(given, home)
    return find_faults(settings, ModelSettings.read(settings.env))


def test_each_part_is_told_by_its_name(tmp_path: Path) -> None:
    assert find(tmp_path) == []
    for name, env in WRONG.items():
        (fault,) = find(tmp_path, **env)
        assert name in fault
    Vault(tmp_path).keep(ADDRESS, "DEPLOY_SECRET", "too short")
    (fault,) = find(tmp_path)
    assert "DEPLOY_SECRET" in fault and "secrets.json" in fault
    both = {key: value for env in WRONG.values() for key, value in env.items()}
    faults = find(tmp_path, **both)
    assert len(faults) == 3
    for name in (*WRONG, "DEPLOY_SECRET"):
        assert sum(name in one for one in faults) == 1
