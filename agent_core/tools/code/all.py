"""All tools that run code, in the order shown to models."""

from agent_core.tools.code.bash import Bash, bash_tool
from agent_core.tools.code.charts.tools import chart_tools
from agent_core.tools.code.execute import code_tools
from agent_core.tools.code.sandboxed import file_tool, sandboxed_tools
from agent_core.tools.code.script.execute_script import script_tools
from agent_core.tools.code.script.running import RunningScripts
from agent_core.tools.contract import Tool
from agent_core.tools.send import FileStore


def every_code_tool(
    bash: Bash, file_store: FileStore, scripts: RunningScripts | None = None
) -> tuple[Tool, ...]:
    """Return those that the sandbox of `bash` supports."""
    shells = (bash_tool(bash),) if "bash" in bash.sandbox.programs else ()
    code = code_tools(bash.sandbox, bash.limit)
    code = (*code, *script_tools(bash.sandbox, scripts or RunningScripts(), bash.limit))
    return (
        *code,
        *shells,
        file_tool(),
        *chart_tools(file_store),
        *sandboxed_tools(bash, file_store),
    )
