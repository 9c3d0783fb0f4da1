"""`isoviz mcp`: the engine for agents, over the Model Context Protocol on standard input and output.

What a tool returns is the document that the command of the same name prints with `--json`.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import isoviz
from isoviz import comparisons, methods, metrics, posthoc, reference, studies, tasks
from isoviz.access.policy import UNRESTRICTED, Policy
from isoviz.access.service import Service
from isoviz.access.visitors import OPERATOR
from isoviz.commands import compare, run_report
from isoviz.demo import bundled_models
from isoviz.errors import InputError, IsoVizError, one_line
from isoviz.runs import planning
from isoviz.runs.recovery import mark_lost
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
except ModuleNotFoundError as missing:
    raise InputError("mcp: the package mcp is not installed; run `pip install 'isoviz[mcp]'`") from missing

Kind = Literal["methods", "measures", "transforms", "tasks", "models", "studies"]
Status = Literal["queued", "running", "finished", "stopped", "failed", "diverged", "lost"]

MOST_LISTED: Final = 200
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
    tools = Tools(store, Service(store, OPERATOR, UNRESTRICTED if allow_writes else Policy(read_only=True)))
    made: MCPServer[Any] = MCPServer(
        "isoviz", instructions=_INSTRUCTIONS, version=isoviz.__version__, log_level="WARNING"
    )
    reading: list[Callable[..., Any]] = [tools.list_runs, tools.show_run, tools.compare_runs]
    reading += [tools.catalogue, tools.measure]
    writing: list[Callable[..., Any]] = [tools.launch_runs, tools.stop_run] if allow_writes else []
    for tool in (*reading, *writing):
        made.add_tool(_plain(tool), annotations=_WRITES if tool in writing else _READS)
    return made


class Tools:
    """The tools. Docstrings and annotations are what an agent reads of them."""

    def __init__(self, store: Store, service: Service) -> None:
        self._store = store
        self._service = service

    def list_runs(self, experiment: str | None = None, status: Status | None = None, limit: int = 20) -> dict[str, Any]:
        """Runs, newest first: id, configuration, status, task metrics and isotropy.

        experiment: only runs launched together under this name. limit: at most 200.
        """
        mark_lost(self._store)
        rows = self._store.list(group=experiment, status=status, limit=max(1, min(limit, MOST_LISTED)))
        return run_report.document([self._document(row.id) for row in rows])

    def show_run(self, id: str) -> dict[str, Any]:
        """One run, with everything that is known of it."""
        return run_report.document([self._document(id)])

    def compare_runs(
        self,
        ids: list[str],
        by: str = "method",
        metric: str | None = None,
        baseline: str | None = None,
        alpha: float = 0.05,
    ) -> dict[str, Any]:
        """Do these runs differ? Means over seeds, differences from the baseline with intervals, p values corrected by Holm's method.

        ids: runs or experiments. by: what is compared: "method" (with its parameters), a setting or a parameter. metric: of the
        task (default: its primary one) or a measure of isotropy.
        """
        rows = compare.rows_of(self._store, ids)
        started = {row.id: run_report.started_of(self._store, row.id) for row in rows}
        table = comparisons.compare(rows, by=by, metric=metric, baseline=baseline, started=started, alpha=alpha)
        return table.model_dump(mode="json")

    def catalogue(self, kind: Kind) -> dict[str, Any]:
        """The names that other tools take, each with what it is; methods with their parameters."""
        return {kind: _CATALOGUES[kind]()}

    async def measure(
        self,
        model: str | None = None,
        task: str | None = None,
        embeddings: str | None = None,
        data: str | None = None,
        split: Literal["train", "validation"] = "validation",
        layer: int | None = None,
        pooling: Literal["sentence", "cls", "mean", "tokens", "last", "head"] | None = None,
        max_eval: int | None = None,
    ) -> dict[str, Any]:
        """Every measure of isotropy of a model on a task's texts, or of a file of embeddings.

        model: bundled name, local directory, hub id or run:ID; with task, and data for a folder of the task's files. embeddings: a
        .npy, .npz, .safetensors, .parquet or .csv file of one row per point, in place of model and task. Without layer and pooling,
        all layers. max_eval: rows at most.
        """
        words = {"model": model, "task": task, "embeddings": embeddings, "data": data, "layer": layer}
        if embeddings is None:
            words |= {"split": split, "pooling": pooling, "max-eval": max_eval}
        given = [word for name, value in words.items() if value is not None for word in (f"--{name}", str(value))]
        return await _command("measure", *given, "--json")

    def launch_runs(
        self,
        method: list[str],
        model: str = "demo/tiny-bert",
        task: str = "demo/acceptability",
        params: dict[str, Any] | None = None,
        seeds: list[int] | None = None,
        data: str | None = None,
        experiment: str | None = None,
        settings: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Fine-tune: one run per method, parameter value and seed. They are queued, and carried out while this server or the app runs.

        method: slugs of the catalogue, "baseline" for none. params: of the method, each a value or a list of values to sweep; only
        with one method besides the baseline. seeds: default 0; three or more for a comparison. settings: such as epochs,
        learning_rate, max_train.
        """
        own = [slug for slug in method if slug != "baseline"]
        if params and len(own) != 1:
            raise ToolError("params: give exactly one method besides the baseline")
        chosen = [(slug, params or {} if slug in own else {}) for slug in method]
        configs = planning.expand([model], [task], chosen, seeds or [0], data=data, **(settings or {}))
        group = experiment or planning.new_group()
        return {"experiment": group, "ids": self._service.launch(configs, group=group)}

    def stop_run(self, id: str) -> dict[str, Any]:
        """Stop a run after its current optimiser step, or take it out of the queue. It can be resumed."""
        self._service.stop(id)
        return run_report.document([self._document(id)])

    def _document(self, run_id: str) -> dict[str, Any]:
        return run_report.as_json(self._store.get(run_id), self._store.summary(run_id))


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


async def _command(*words: str) -> dict[str, Any]:
    """The document that a command prints. It has a process of its own, so that a large model's memory is given back."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "isoviz", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:  # the client has cancelled
            process.kill()
    if process.returncode:
        lines = err.decode(errors="replace").strip().splitlines()
        raise ToolError(lines[-1] if lines else f"isoviz {words[0]} ended with status {process.returncode}")
    document: dict[str, Any] = json.loads(out)
    return document


def _with_parameters(items: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Methods or transforms, each with its parameters."""
    return [
        {
            "slug": slug,
            "title": item.title,
            "summary": item.summary,
            "parameters": [vars(one) for one in reference.parameters(item.Params)],
        }
        for slug, item in items.items()
    ]


_CATALOGUES: dict[Kind, Callable[[], list[dict[str, Any]]]] = {
    "methods": lambda: _with_parameters(methods.catalogue()),
    "measures": lambda: [
        {"slug": slug, "title": metric.number_title, "unchanged_by": sorted(metric.unchanged_by)}
        for slug, metric in metrics.catalogue().items()
    ],
    "transforms": lambda: _with_parameters(posthoc.catalogue()),
    "tasks": lambda: [
        {"slug": slug, "title": task.title, "description": task.description, "needs_data": not task.generated}
        for slug, task in tasks.catalogue().items()
    ],
    "models": lambda: [{"name": name} for name in bundled_models()],
    "studies": lambda: [one.study.card(one.slug if one.study.parts else "") for one in studies.listed()],
}
