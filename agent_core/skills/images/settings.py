"""Settings of pictures: who makes them, and by which model."""

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from agent_core.models.providers import SettingsError

Provider = Literal["openai", "gemini"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
MODELS: dict[Provider, str] = {
    "openai": "gpt-image-2.5-flare",
    "gemini": "gemini-2.5-flash-image",
}


class ImageSettings(BaseModel):
    """`provider`: None for the first that has a key. `model`: "" for the provider's default."""

    model_config = ConfigDict(frozen=True)

    provider: Provider | None = None
    model: str = ""

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "ImageSettings":
        """From `env`; raises SettingsError."""
        setting, model = "IMAGE_PROVIDER", env.get("IMAGE_MODEL", "").strip()
        name = env.get(setting, "").strip().lower()
        known: dict[str, Provider] = {one: one for one in PROVIDERS}
        if name and name not in known:
            raise SettingsError(setting, name, f"use {' or '.join(PROVIDERS)}.")
        return cls(provider=known.get(name), model=model)
