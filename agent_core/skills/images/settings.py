"""Settings of pictures: who makes them, and by which model."""

from typing import Literal, get_args

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables
from agent_core.config.kinds import Choice

Provider = Literal["openai", "gemini"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
MODELS: dict[Provider, str] = {
    "openai": "gpt-image-2.5-flare",
    "gemini": "gemini-2.5-flash-image",
}
PROVIDER = Setting(
    "IMAGE_PROVIDER",
    None,
    Choice(words=PROVIDERS, mend="use openai or gemini."),
    "`openai` or `gemini`: provider of generated images ([skills](skills.md)). Uses "
    "`OPENAI_BASE_URL` or `GEMINI_BASE_URL`, which must support OpenAI's image generation API, "
    "as the default addresses do",
    default_text="the first with a key",
)
MODEL = Setting(
    "IMAGE_MODEL",
    "",
    str,
    "model for generated images",
    default_text=" or ".join(f"`{model}`" for model in MODELS.values()),
)
TABLES: SettingTables = {"pictures": (PROVIDER, MODEL)}


class ImageSettings(Struct, frozen=True, kw_only=True):
    """`provider`: None for the first that has a key. `model`: "" for the provider's default."""

    provider: Provider | None = PROVIDER.default
    model: str = MODEL.default

    @classmethod
    def read(cls, env: Env) -> "ImageSettings":
        """Read the settings from `env`; raises SettingsError."""
        return cls(provider=PROVIDER.read(env), model=MODEL.read(env))
