"""The providers, in each protocol that they are spoken to in, as a gateway is set up for them."""

from tests.stories.rig import Rig

PROVIDERS = {
    "openai": ("openai/fake-model", "/v1", {}, "messages"),
    "openai by responses": (
        "openai/fake-model", "/v1", {"OPENAI_API_MODE": "codex_responses"}, "input",
    ),
    "anthropic": ("anthropic/fake-model", "", {}, "messages"),
    "gemini": ("gemini/gemini-3.8-flash", "/v1", {}, "messages"),
    "gemini by its own protocol": (
        "gemini/gemini-3.8-flash", "", {"GEMINI_API_MODE": "generate_content"}, "contents",
    ),
}  # fmt: skip


def settings(rig: Rig, name: str) -> dict[str, str]:
    """Those of one provider, spoken to in one protocol."""
    model, path, more, _ = PROVIDERS[name]
    provider = model.partition("/")[0].upper()
    rig.model.key = "k-1"
    return {
        f"{provider}_API_KEY": "k-1", f"{provider}_BASE_URL": f"{rig.model_url}{path}",
        "PRO_MODEL": model,
    } | more  # fmt: skip
