"""Settings of models, and which model serves a tier."""

import asyncio
import json
import subprocess
import sys

import pytest

from agent_core.models.demo import DemoModel
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings, SettingsError
from tests.agent_core.asking import ask, ignore
from tests.fakes.model_server import Json, ModelServer

KEYS = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a"}


def compatible(**more: object) -> Json:
    return {"name": "local", "base_url": "http://127.0.0.1:1/v1", "api_key": "sk-c"} | more


def providers(*entries: object) -> dict[str, str]:
    return {"OPENAI_COMPATIBLE_PROVIDERS": json.dumps(entries)}


def described(env: dict[str, str]) -> list[str]:
    models = Models(ModelSettings.read(env))
    models.check()
    return [models.describe(tier) for tier in ("max", "pro", "flash")]


SWITCHES = ("MEMORY_ENABLED", "CONTEXT_COMPRESSION_ENABLED", "AGENT_DEBUG")


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_have_one_set_of_words(name: str) -> None:
    def read(word: str) -> bool:
        made = ModelSettings.read({name: word})
        return (made.memory.enabled, made.context.enabled, made.agent.debug)[SWITCHES.index(name)]

    assert all(map(read, ("on", "True", " yes ", "1")))
    assert not any(map(read, ("off", "FALSE", "no", " 0")))
    assert read("") is (name != "AGENT_DEBUG")
    with pytest.raises(SettingsError, match=f"{name}=never: write on or off."):
        read("never")


def test_nothing_set_is_the_demo() -> None:
    models = Models(ModelSettings.read({}))
    models.check()
    assert models.demo
    model, name = models.pick("max")
    assert isinstance(model, DemoModel)
    assert name == "demo"


def test_a_key_is_enough() -> None:
    assert described(KEYS) == [
        "openai/gpt-5.6-sol",
        "openai/gpt-5.6-terra",
        "openai/gpt-5.6-luna",
    ]
    assert described({"ANTHROPIC_API_KEY": "k"})[2] == "anthropic/claude-haiku-5-5"
    assert described({"GEMINI_API_KEY": "k"})[1] == "gemini/gemini-3.8-flash"


def test_a_model_is_stronger_than_a_provider() -> None:
    env = KEYS | {"MAX_MODEL": "openai/gpt-x", "MAX_MODEL_PROVIDER": "anthropic"}
    assert described(env)[0] == "openai/gpt-x"
    assert described(KEYS | {"PRO_MODEL_PROVIDER": "anthropic"}) == [
        "anthropic/claude-opus-5-5",
        "anthropic/claude-sonnet-5-5",
        "anthropic/claude-haiku-5-5",
    ]


def test_a_tier_that_is_not_set_follows_the_first_that_is() -> None:
    env = KEYS | {"MAX_MODEL": "anthropic/claude-x"}
    assert described(env) == [
        "anthropic/claude-x",
        "anthropic/claude-sonnet-5-5",
        "anthropic/claude-haiku-5-5",
    ]
    env = providers(compatible()) | {"MAX_MODEL": "local/llama"}
    assert described(env) == ["local/llama"] * 3


def test_a_model_with_a_slash_of_its_own() -> None:
    env = providers(compatible()) | {"MAX_MODEL": "qwen/qwen3", "MAX_MODEL_PROVIDER": "local"}
    assert described(env)[0] == "local/qwen/qwen3"
    assert described(providers(compatible()) | {"MAX_MODEL": "local/qwen/qwen3"})[0] == (
        "local/qwen/qwen3"
    )


def test_lite_is_flash() -> None:
    env = KEYS | {"LITE_MODEL_PROVIDER": "anthropic"}
    assert described(env)[2] == "anthropic/claude-haiku-5-5"
    with pytest.raises(SettingsError, match="LITE_MODEL_PROVIDER=anthropic: FLASH_MODEL_PROVIDER"):
        ModelSettings.read(env | {"FLASH_MODEL_PROVIDER": "openai"})
    with pytest.raises(SettingsError, match="^LITE_MODEL_PROVIDER=nosuch: "):
        described(KEYS | {"LITE_MODEL_PROVIDER": "nosuch"})
    with pytest.raises(SettingsError, match="^FLASH_MODEL_PROVIDER=nosuch: "):
        described(KEYS | {"FLASH_MODEL_PROVIDER": "nosuch"})


def test_compatible_providers_and_their_alias() -> None:
    tiers = {"max": "big", "flash": "small"}
    entry = compatible(tier_models=tiers, enable_thinking=True, other=1)
    assert described(providers(entry)) == ["local/big", "local/big", "local/small"]
    settings = ModelSettings.read({"CUSTOM_PROVIDERS": json.dumps([entry])})
    endpoint = settings.endpoint("local")
    assert (endpoint.base_url, endpoint.api_key, endpoint.thinking) == (
        "http://127.0.0.1:1/v1",
        "sk-c",
        True,
    )


def test_many_keys_and_own_urls() -> None:
    env = {"OPENAI_API_KEY": " a, b ,", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    settings = ModelSettings.read(env)
    assert settings.keys["openai"] == ("a", "b")
    assert settings.endpoint("openai").base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"MAX_MODEL": "gpt"}, "MAX_MODEL=gpt: write it as provider/model."),
        ({"MAX_MODEL": "openai/gpt"}, "MAX_MODEL=openai: it has no key; set OPENAI_API_KEY."),
        (KEYS | {"PRO_MODEL": "nobody/x"}, "PRO_MODEL=nobody: no such provider; use one of:"),
        (
            {"FLASH_MODEL_PROVIDER": "gemini"},
            "FLASH_MODEL_PROVIDER=gemini: it has no key; set GEMINI_API_KEY.",
        ),
        ({"OPENAI_API_KEY": "sk-ü"}, "OPENAI_API_KEY: holds characters that no key has"),
        (
            providers(compatible(api_key="sk-a b")),
            "OPENAI_COMPATIBLE_PROVIDERS[0].api_key: holds characters that no key has",
        ),
        (
            KEYS | {"MAX_MODEL": "ollama/x"},
            "MAX_MODEL=ollama: no such provider; use one of: openai, anthropic, gemini; or name a "
            "server of your own in OPENAI_COMPATIBLE_PROVIDERS.",
        ),
        ({"OPENAI_BASE_URL": "ftp://x"}, "OPENAI_BASE_URL=ftp://x: must be an http or https URL."),
        (providers("x"), "OPENAI_COMPATIBLE_PROVIDERS[0]: "),
        (
            providers(compatible(), compatible(name="b", base_url="nope")),
            "OPENAI_COMPATIBLE_PROVIDERS[1].base_url: must be an http or https URL.",
        ),
        (providers({"name": "a"}), "OPENAI_COMPATIBLE_PROVIDERS[0].base_url: Field required."),
        (providers(compatible(name="openai")), "OPENAI_COMPATIBLE_PROVIDERS[0].name=openai: is"),
        ({"CUSTOM_PROVIDERS": "{"}, "CUSTOM_PROVIDERS: is not valid JSON"),
        ({"CUSTOM_PROVIDERS": "{}"}, "CUSTOM_PROVIDERS: must be a JSON list"),
        (providers(compatible()), "MAX_MODEL: no provider has a model for it"),
        (
            providers(compatible(api_mode="grpc")),
            "OPENAI_COMPATIBLE_PROVIDERS[0].api_mode: must be one of: chat_completions, codex_r",
        ),
        ({"COMMAND_MAX_SECONDS": "0"}, "COMMAND_MAX_SECONDS=0: write whole seconds, from 1 to"),
        ({"COMMAND_MAX_SECONDS": "1e3"}, "COMMAND_MAX_SECONDS=1e3: write whole seconds"),
    ],
)
def test_errors_name_setting_value_and_mend(env: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        described(env)
    assert str(caught.value).startswith(text)
    assert "sk-" not in str(caught.value)


def test_secrets_stay_out_of_representations() -> None:
    settings = ModelSettings.read(KEYS | providers(compatible()) | {"EXA_API_KEY": "sk-web"})
    shown = f"{settings!r} {settings.endpoint('openai')!r}"
    assert "sk-" not in shown


async def test_clients_are_made_once_and_named_providers_work() -> None:
    models = Models(ModelSettings.read(KEYS))
    await asyncio.to_thread(models.warm)
    model, name = models.pick("anthropic/claude-x")
    assert (model.provider, name) == ("anthropic", "claude-x")
    assert models.pick("anthropic/claude-y")[0] is model
    with pytest.raises(SettingsError, match="name a tier or provider/model"):
        models.pick("huge")
    with pytest.raises(SettingsError, match="model=gemini: it has no key"):
        models.pick("gemini/x")
    await models.close()


def test_no_sdk_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from agent_core.models.tiers import Models;"
        "from agent_core.settings import ModelSettings;"
        "m = Models(ModelSettings.read({'OPENAI_API_KEY': 'k'})); m.check(); m.describe('max');"
        "assert not {'openai', 'anthropic', 'httpx2'} & set(sys.modules);"
        "m.warm(); assert 'openai' in sys.modules and 'anthropic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_for_another_server_than_openais_its_sdk_is_not_imported() -> None:
    code = (
        "import sys; from agent_core.models.tiers import Models;"
        "from agent_core.settings import ModelSettings;"
        "keys = {'OPENAI_API_KEY': 'k', 'OPENAI_BASE_URL': 'http://127.0.0.1:1/v1'};"
        "Models(ModelSettings.read(keys)).warm();"
        "assert not {'openai', 'anthropic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("base_url", "api_mode", "mode", "reached"),
    [
        ("http://h/v1", "", "chat_completions", "http://h/v1"),
        ("http://h/anthropic", "", "anthropic_messages", "http://h/anthropic"),
        ("http://h/api/anthropic/v1/", "", "anthropic_messages", "http://h/api/anthropic"),
        ("https://api.anthropic.com/v1", "", "anthropic_messages", "https://api.anthropic.com"),
        ("https://api.anthropic.com.evil/v1", "", "chat_completions", None),
        ("http://h/misanthropic", "", "chat_completions", None),
        ("http://h/v1/responses", "", "codex_responses", "http://h/v1"),
        ("http://h/backend-api/codex", "", "codex_responses", "http://h/backend-api/codex"),
        ("http://h/v1", "codex_responses", "codex_responses", "http://h/v1"),
        ("http://h/anthropic", "chat_completions", "chat_completions", "http://h/anthropic"),
        ("http://h/v1", "anthropic_messages", "anthropic_messages", "http://h"),
    ],
)
def test_what_a_provider_speaks(base_url: str, api_mode: str, mode: str, reached: str) -> None:
    entry = compatible(base_url=base_url, api_mode=api_mode)
    endpoint = ModelSettings.read(providers(entry)).endpoint("local")
    assert (endpoint.api_mode, endpoint.base_url) == (mode, reached or base_url)


def test_a_known_provider_speaks_its_own_whatever_its_address() -> None:
    urls = {f"{name}_BASE_URL": "http://h/anthropic" for name in ("OPENAI", "ANTHROPIC")}
    settings = ModelSettings.read(KEYS | urls)
    assert settings.endpoint("openai").api_mode == "chat_completions"
    assert settings.endpoint("anthropic").api_mode == "anthropic_messages"
    settings = ModelSettings.read(KEYS | {"OPENAI_API_MODE": "codex_responses"})
    assert settings.endpoint("openai").api_mode == "codex_responses"


async def test_a_compatible_provider_is_spoken_to_as_it_speaks() -> None:
    server = ModelServer("sk-c")
    url = await server.start()
    entries = [
        compatible(base_url=f"{url}/v1", api_mode="anthropic_messages"),
        compatible(name="other", base_url=f"{url}/v1"),
    ]
    models = Models(ModelSettings.read(providers(*entries)))
    for name in ("local/a", "other/b"):
        model, _ = await asyncio.to_thread(models.pick, name)
        reply = await model.complete(ask(), ignore)
        assert reply.provider == model.provider == name.split("/")[0]
    assert [one.path for one in server.requests] == ["/v1/messages", "/v1/chat/completions"]
    await models.close()
    await server.close()


def test_one_that_speaks_anthropics_messages_hears_nothing() -> None:
    env = providers(compatible(api_mode="anthropic_messages"))
    with pytest.raises(SettingsError, match="local transcribes nothing"):
        ModelSettings.read(env | {"TRANSCRIPTION_MODEL": "local/x"}).listener()


def test_what_is_set_about_tools() -> None:
    tools = ModelSettings.read({"COMMAND_MAX_SECONDS": "90", "HOOKS": "a:b, c:d,"}).tools
    assert (tools.command_max_seconds, tools.hooks) == (90, ("a:b", "c:d"))
    assert ModelSettings.read({}).tools.command_max_seconds == 600
    assert ModelSettings.read({}).tools.execution_mode == "standard"
    assert ModelSettings.read({"EXECUTION_MODE": "CodeAct"}).tools.execution_mode == "codeact"
    with pytest.raises(SettingsError, match="EXECUTION_MODE"):
        ModelSettings.read({"EXECUTION_MODE": "wild"})
