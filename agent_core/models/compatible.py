"""Providers at addresses of the operator's own, as a setting lists them in JSON."""

import json
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agent_core.config.declaration import WrongValue
from agent_core.config.kinds import is_url, parse_keys, split_commas
from agent_core.models.providers import API_MODES, BASE_URLS, ApiMode, detect_api_mode


class TierModels(BaseModel):
    """The models of a compatible provider."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    max: str = ""
    pro: str = ""
    flash: str = ""


class CompatibleProvider(BaseModel):
    """A provider at `base_url`. `api_key`: one, or several with commas or as a list. `api_mode`:
    its API, "" for that of `mode`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1, pattern=r"^[^/\s,]+$")
    base_url: str
    api_key: str = Field(default="", repr=False)
    tier_models: TierModels = TierModels()
    enable_thinking: bool | None = None
    api_mode: str = ""

    @property
    def mode(self) -> ApiMode:
        """The API mode that was set, otherwise the one its address implies."""
        return cast(ApiMode, self.api_mode) if self.api_mode else detect_api_mode(self.base_url)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys in the order in which they are tried; a server without keys accepts any."""
        return split_commas(self.api_key) or ("none",)

    @field_validator("api_mode")
    @classmethod
    def _check_api_mode(cls, value: str) -> str:
        if value and value not in API_MODES:
            raise ValueError(f"must be one of: {', '.join(API_MODES)}")
        return value

    @field_validator("api_key", mode="before")
    @classmethod
    def _join_keys(cls, value: object) -> object:
        several = isinstance(value, list) and all(isinstance(key, str) for key in value)
        return ",".join(cast("list[str]", value)) if several else value

    @field_validator("api_key")
    @classmethod
    def _check_keys(cls, value: str) -> str:
        try:
            parse_keys(value)
        except ValueError as error:
            raise ValueError(str(error).rstrip(".")) from None
        return value

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not is_url(value):
            raise ValueError("must be an http or https URL")
        return value


def parse_compatible(text: str) -> tuple[CompatibleProvider, ...]:
    """The providers in the JSON list `text`. Values stay out of error texts: they may hold keys."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        raise WrongValue("is not valid JSON; write a list of objects.") from None
    if not isinstance(entries, list):
        raise WrongValue("must be a JSON list of objects.")
    providers = tuple(_parse_entry(index, entry) for index, entry in enumerate(entries))
    names = [provider.name for provider in providers]
    for index, name in enumerate(names):
        if name in BASE_URLS or name in names[:index]:
            raise WrongValue("is taken; choose another name.", name, f"[{index}].name")
    return providers


def _parse_entry(index: int, entry: object) -> CompatibleProvider:
    try:
        return CompatibleProvider.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = "".join(f".{part}" for part in first["loc"])
        mend = f"{first['msg'].removeprefix('Value error, ')}."
        raise WrongValue(mend, place=f"[{index}]{path}") from None
