"""`isoviz mcp`: the engine for agents, over the Model Context Protocol on standard input and output."""

from __future__ import annotations

import argparse
import asyncio
import functools
from collections.abc import Callable
from typing import Any, Final

import isoviz
from isoviz.access.policy import UNRESTRICTED, Policy
from isoviz.access.service import Service
from isoviz.access.visitors import OPERATOR
from isoviz.commands.operations import operations
from isoviz.errors import InputError, IsoVizError, one_line
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
except ModuleNotFoundError as missing:
    raise InputError("mcp: the package mcp is not installed; run `pip install 'isoviz[mcp]'`") from missing

_INSTRUCTIONS: Final = (
    "IsoViz measures how isotropic the embeddings of transformers are, fine-tunes models with isotropy methods, and compares the "
    "runs. More isotropic is not better by itself: compare_runs says whether a setting changed the task's metric. Begin with "
    "list_runs, or with catalogue for the names that other tools take."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def run(options: argparse.Namespace) -> int:
    """Serve until the client closes the connection."""
    store = Store(options.store)
    runner = Runner(store) if options.allow_writes else None
    if runner is not None:
        runner.start()
    try:
        server(store, allow_writes=options.allow_writes).run("stdio")
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
    made: MCPServer[Any] = MCPServer(
        "isoviz", instructions=_INSTRUCTIONS, version=isoviz.__version__, log_level="WARNING"
    )
    for operation in operations(store, service):
        if allow_writes or not operation.writes:
            made.add_tool(_plain(operation.call), annotations=_WRITES if operation.writes else _READS)
    return made


def _plain(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The same tool. The agent sees the message of an `IsoVizError`; any other exception is logged."""
    if asyncio.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def told_later(*args: Any, **named: Any) -> Any:
            try:
                return await tool(*args, **named)
            except IsoVizError as error:
                raise ToolError(one_line(str(error))) from error

        return told_later

    @functools.wraps(tool)
    def told(*args: Any, **named: Any) -> Any:
        try:
            return tool(*args, **named)
        except IsoVizError as error:
            raise ToolError(one_line(str(error))) from error

    return told
