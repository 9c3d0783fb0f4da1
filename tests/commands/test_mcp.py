"""`isoviz mcp`: a client session over standard input and output finds, measures and compares runs, and launches only where it may."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from isoviz.config import RunConfig
from isoviz.runs.store import Store

READING = ["measure", "ruler", "compare", "check", "rows", "transform", "upgrade"]
READING += ["catalogue", "list_runs", "show_run", "compare_runs"]


@asynccontextmanager
async def session(folder: Path, *options: str) -> AsyncIterator[Client]:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "isoviz", "mcp", "--store", str(folder), *options],
        env=dict(os.environ) | {"ISOVIZ_HOME": str(folder), "ISOVIZ_SPARES": "off"},
    )
    async with Client(command) as client:
        yield client


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def test_a_reading_session(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (run_id,) = store.create([RunConfig.checked(model="demo/tiny-bert", task="demo/acceptability")])
    np.save(tmp_path / "points.npy", np.random.default_rng(0).standard_normal((64, 8)))

    async def talk() -> None:
        async with session(tmp_path) as client:
            offered = await client.list_tools()
            assert [tool.name for tool in offered.tools] == READING
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in offered.tools)
            (listed,) = (await answer(client, "list_runs"))["runs"]
            assert (listed["id"], listed["status"]) == (run_id, "queued")
            (shown,) = (await answer(client, "show_run", id=run_id))["runs"]
            assert shown["config"]["task"] == "demo/acceptability"
            slugs = {method["slug"] for method in (await answer(client, "catalogue", kind="methods"))["methods"]}
            assert {"baseline", "istar", "isobn"} <= slugs
            for kind in ("measures", "transforms", "tasks", "models", "studies"):
                assert (await answer(client, "catalogue", kind=kind))[kind]
            assert "no run" in await refusal(client, "show_run", id="nothing")
            assert (await refusal(client, "list_runs", group="mine")).startswith("group: ")
            assert "\n" not in await refusal(client, "list_runs", limit="many")
            assert "no run and no experiment" in await refusal(client, "compare_runs", ids=["nothing"])
            assert "stop_run" in await refusal(client, "stop_run", id=run_id)
            measured = await answer(client, "measure", embeddings=str(tmp_path / "points.npy"))
            assert (measured["n"], measured["d"]) == (64, 8) and 0 < measured["isoscore"] < 1
            assert f"'{run_id}' is queued" in await refusal(
                client, "measure", model=f"run:{run_id}", task="demo/acceptability"
            )

    anyio.run(talk)
    assert store.get(run_id).status == "queued"


def test_a_session_that_launches_and_stops(tmp_path: Path) -> None:
    async def talk() -> None:
        async with session(tmp_path, "--allow-writes") as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {*READING} | {
                "launch_runs",
                "stop_run",
                "resume_run",
            }
            refused = await refusal(client, "launch_runs", method=["istar"], params={"lamda": 1})
            assert "lamda" in refused and "\n" not in refused
            assert "settings.seed: " in await refusal(client, "launch_runs", method=["baseline"], settings={"seed": 1})
            settings = {"epochs": "1000", "max_train": 32, "max_eval": 16, "probe_size": 32, "batch_size": 16}
            launched = await answer(client, "launch_runs", method=["baseline"], settings=settings)
            (run,) = (await answer(client, "stop_run", id=launched["ids"][0]))["runs"]
            patience = time.monotonic() + 240
            while run["status"] in ("queued", "running"):
                assert time.monotonic() < patience
                await anyio.sleep(0.5)
                (run,) = (await answer(client, "show_run", id=launched["ids"][0]))["runs"]
            assert run["status"] == "stopped"

    anyio.run(talk)
