"""`isoviz mcp`: the engine for agents, over the Model Context Protocol on standard input and output."""

from __future__ import annotations

import os
from typing import Annotated, Any, Final

from pydantic import Field

import isoviz
from isoviz.commands.options import StoreOption
from isoviz.errors import InputError, IsoVizError, install
from isoviz.operations.access.policy import UNRESTRICTED, Policy
from isoviz.operations.access.service import Service
from isoviz.operations.access.visitors import OPERATOR
from isoviz.operations.operation import argument
from isoviz.operations.table import Operation, operations
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import ToolAnnotations
except ModuleNotFoundError as missing:
    raise InputError(f"mcp: the package mcp is not installed; run `{install('mcp')}`") from missing

_INSTRUCTIONS: Final = (
    "IsoViz measures how isotropic the embeddings of transformers are, fine-tunes models with isotropy methods, and compares the "
    "runs. More isotropic is not better by itself: compare says which encoder ranks higher on someone's questions, compare_runs whether "
    "a setting changed a task's metric. Of vectors, measure first, then ruler, then compare. catalogue has the names that tools take."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def run(
    allow_writes: Annotated[bool, argument("let the agent launch and stop runs")] = False, store: StoreOption = None
) -> int:
    """Serve until the client closes the connection."""
    opened = Store(store)
    os.environ["ISOVIZ_STORE"] = opened.url  # for the process that measures a run's model
    runner = Runner(opened) if allow_writes else None
    if runner is not None:
        runner.start()
    try:
        server(opened, allow_writes=allow_writes).run("stdio")
    finally:
        if runner is not None:
            runner.close()
    return 0


def server(store: Store, *, allow_writes: bool = False) -> MCPServer[Any]:
    """The server of a store's runs.

    Args:
        allow_writes: offer the tools that launch and stop runs.
    """
    service = Service(store, OPERATOR, UNRESTRICTED if allow_writes else Policy(read_only=True))
    tools: list[Tool] = [
        _tool(operation) for operation in operations(store, service) if allow_writes or not operation.writes
    ]
    return MCPServer("isoviz", instructions=_INSTRUCTIONS, version=isoviz.__version__, log_level="WARNING", tools=tools)


class _Tool(Tool):
    """An operation as a tool. It checks its arguments itself, as over HTTP; the agent sees the message of an `IsoVizError`."""

    operation: Any = Field(None, exclude=True)

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        try:
            result = await self.operation.run(self.fn_metadata.pre_parse_json(arguments))
        except IsoVizError as error:
            raise ToolError(" ".join(filter(None, (str(error), error.advice)))) from error
        except Exception as error:  # logged by the server
            raise UnexpectedToolError(f"{self.name} failed; the server's log says why") from error
        return self.fn_metadata.convert_result(result) if convert_result else result


def _tool(operation: Operation) -> Tool:
    tool = _Tool.from_function(operation.call, annotations=_WRITES if operation.writes else _READS)
    return tool.model_copy(update={"operation": operation, "parameters": operation.arguments().model_json_schema()})
