"""The operations for agents and programs: one table, served over the Model Context Protocol and over HTTP.

An operation returns the document that the command of the same name prints with `--json`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MethodType
from typing import Any, Final, Literal

from pydantic import BaseModel

from isoviz import limits, methods, metrics, posthoc, reference, studies, tasks
from isoviz.catalogues import installed
from isoviz.demo import bundled_models
from isoviz.errors import InputError, StoreError
from isoviz.events import Status
from isoviz.jobs import guarded
from isoviz.operations import documents
from isoviz.operations.access.service import Service
from isoviz.operations.check import CheckRequest
from isoviz.operations.compare import CompareRequest
from isoviz.operations.measure import CloudRequest, MeasureRequest
from isoviz.operations.operation import Alpha, Baseline, By, ComparedMetric, arguments_of, checked, keywords
from isoviz.operations.rows import RowsRequest
from isoviz.operations.ruler import RulerRequest
from isoviz.operations.settings import Settings
from isoviz.operations.transform import TransformRequest
from isoviz.operations.upgrade import UpgradeRequest
from isoviz.parameters import extra
from isoviz.runs import comparisons, planning
from isoviz.runs.identity import one_line
from isoviz.runs.naming import experiment_name
from isoviz.runs.recovery import mark_lost
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store

Kind = Literal["methods", "measures", "transforms", "tasks", "models", "studies"]

MOST_LISTED: Final = 200
_MEASURE_SECONDS: Final = 3600.0
"""How long `measure` and `ruler` may take for a visitor: long enough to download a model first."""
_THREADS: Final = ThreadPoolExecutor(32, "operation")
_MEASURING: Final = ThreadPoolExecutor(8, "measure")
"""Its threads wait for their turn to measure; other operations must not wait for them."""
_VECTORS: Final = ("embeddings", "encoders", "vectors", "input", "old")
"""Fields of requests that name vectors."""
_MODEL_MODULES: Final = ("torch", "transformers", "isoviz.models.adapter")


@dataclass(frozen=True)
class Operation:
    """An entry of the table.

    Attributes:
        call: carries it out, a method or (in another package) a function of `Operations`; callers see its annotations and docstring.
        writes: it launches or changes something.
        computes: it keeps this machine busy.
    """

    call: Callable[..., Any]
    writes: bool = False
    computes: bool = False

    @property
    def name(self) -> str:
        return self.call.__name__

    slug = name

    @property
    def description(self) -> str:
        return inspect.getdoc(self.call) or ""

    def arguments(self) -> type[BaseModel]:
        """The model of its arguments."""
        return arguments_of(self.call)

    async def run(self, arguments: Mapping[str, Any]) -> Any:
        """Carry it out for a client, whose arguments are checked and converted.

        Raises:
            InputError: an argument is unknown, missing or not allowed.
            IsoVizError: what the operation raises.
        """
        named = keywords(self.call, checked(self.arguments(), arguments))
        if inspect.iscoroutinefunction(self.call):
            return await self.call(**named)
        return await asyncio.get_running_loop().run_in_executor(_THREADS, functools.partial(self.call, **named))


def compare(store: Store, names: Sequence[str], **choices: Any) -> comparisons.Table:
    """Compare runs with these ids or in these experiments, each once; choices as for `comparisons.compare`."""
    rows = {row.id: row for name in names for row in store.list(group=name, order="oldest") or [_run(store, name)]}
    started = {run_id: documents.started_of(store, run_id) for run_id in rows}
    return comparisons.compare(list(rows.values()), started=started, **choices)


def _run(store: Store, name: str) -> RunRow:
    try:
        return store.get(name)
    except StoreError:
        raise StoreError(f"id: no run and no experiment '{name}' in the store {store}", field="id") from None


def operations(
    store: Store, service: Service, checks: planning.DataChecks = planning.IN_THIS_PROCESS
) -> list[Operation]:
    """All operations on a store's runs, with the rights that `service` gives. `checks`: who reads the data of runs to launch."""
    do = Operations(store, service, checks)
    ours = [
        Operation(do.measure, computes=True),
        Operation(do.ruler, computes=True),
        Operation(do.compare, computes=True),
        Operation(do.check, computes=True),
        Operation(do.rows, computes=True),
        Operation(do.transform, computes=True),
        Operation(do.upgrade, computes=True),
        Operation(do.catalogue),
        Operation(do.list_runs),
        Operation(do.show_run),
        Operation(do.compare_runs),
        Operation(do.launch_runs, writes=True),
        Operation(do.stop_run, writes=True),
        Operation(do.resume_run, writes=True),
    ]
    taken = {operation.name for operation in ours}
    others = installed("isoviz.operations", Operation, listed_as="OPERATIONS", taken=taken).values()
    return [*ours, *(dataclasses.replace(other, call=MethodType(other.call, do)) for other in others)]


class Operations:
    """The operations. Callers see their docstrings and annotations."""

    def __init__(self, store: Store, service: Service, checks: planning.DataChecks = planning.IN_THIS_PROCESS) -> None:
        self.store = store
        self.service = service
        self._checks = checks

    def list_runs(self, experiment: str | None = None, status: Status | None = None, limit: int = 20) -> dict[str, Any]:
        """Runs, newest first: id, configuration, status, task metrics and isotropy.

        experiment: only runs launched together under this name. limit: at most 200.
        """
        mark_lost(self.store)
        shown: dict[str, Any] = {"group": experiment, "status": status, "limit": max(1, min(limit, MOST_LISTED))}
        return documents.listed(self.store.list(**shown), self.store.summaries(**shown))

    def show_run(self, id: str) -> dict[str, Any]:
        """One run in full: configuration, status, task metrics, isotropy, timing and provenance."""
        return documents.shown(self.store, id)

    def compare_runs(
        self,
        ids: list[str],
        by: By = "method",
        metric: ComparedMetric = None,
        baseline: Baseline = None,
        alpha: Alpha = 0.05,
    ) -> dict[str, Any]:
        """Do these runs differ? Means over seeds, differences from the baseline with intervals, p values corrected by Holm's method.

        ids: runs or experiments.
        """
        return compare(self.store, ids, by=by, metric=metric, baseline=baseline, alpha=alpha).model_dump(mode="json")

    def catalogue(self, kind: Kind) -> dict[str, Any]:
        """The names that other tools take, each with what it is; methods with their parameters."""
        return {kind: _CATALOGUES[kind]()}

    async def measure(self, request: MeasureRequest) -> dict[str, Any]:
        """Every measure of isotropy of a model on a task's texts, or of a file of embeddings: one row per point.

        Without layer and pooling, all layers.
        """
        request.check()
        return await self._computed("isoviz.operations.measure:document", request, request.model)

    async def ruler(self, request: RulerRequest) -> dict[str, Any]:
        """What a cosine means for an encoder: the noise floor of unrelated pairs, P(related | cosine) and a threshold if related pairs
        are known, all with intervals; from a model on texts, or a file of embeddings. cosine: read these on the ruler.
        """
        request.check()
        model = request.model if request.embeddings is None else None
        return await self._computed("isoviz.operations.ruler:document", request, model)

    async def compare(self, request: CompareRequest) -> dict[str, Any]:
        """Which encoder ranks higher on these questions? nDCG@10, recall@10 and MRR@10 with intervals, a verdict on each encoder against
        the first (higher, lower, no harm above the margin, cannot tell), and questions that get worse. Without relevance, neighbours only.
        """
        request.check()
        models = request.encoders if request.documents is not None else ()
        return await self._computed("isoviz.operations.compare:document", request, next(iter(models), None))

    async def check(self, request: CheckRequest) -> dict[str, Any]:
        """Did these vectors change? Each measure against a saved baseline, with its interval, tolerance and outcome; ok is false if one
        changed. fail_on: MEASURE or MEASURE=TOLERANCE.
        """
        return await self._computed("isoviz.operations.check:document", request, None)

    async def rows(self, request: RowsRequest) -> dict[str, Any]:
        """Each row of a file of vectors: how often it is found, its nearest other row, its length; listed are hubs, rows that are never
        found, or copies.
        """
        return await self._computed("isoviz.operations.rows:document", request, None)

    async def transform(self, request: TransformRequest) -> dict[str, Any]:
        """What would this chain of transforms do? Neighbours that stay, and with queries and relevance the verdict on search: on all
        questions, and on those that What-if holds back. It writes nothing: the command of the same name does.
        """
        return await self._computed("isoviz.operations.transform:document", request, None)

    async def upgrade(self, request: UpgradeRequest) -> dict[str, Any]:
        """Does a linear map of old vectors save re-embedding? Recall@10 of the new encoder's neighbours, on rows that the map was not
        fitted on, with intervals.
        """
        return await self._computed("isoviz.operations.upgrade:document", request, None)

    def _resolved(self, request: BaseModel, model: str | None) -> dict[str, Any]:
        """The paths of a request, checked for the visitor. `model`: what it loads, if it does."""
        if isinstance(request, CloudRequest):
            resolved = self.service.resolve_paths(model, request.data, request.embeddings)
            return {"data": resolved[1], "embeddings": resolved[2]} | ({"model": resolved[0]} if model else {})
        found: dict[str, Any] = {}
        for name, field in type(request).model_fields.items():
            given = getattr(request, name)
            if name == "encoders" and model is not None:
                found[name] = tuple(self.service.resolve_paths(one)[0] for one in given)
            elif given is not None and extra(field).get("metavar") in ("FILE", "ENCODER"):
                file = [
                    self.service.resolve_paths(file=one)[2] for one in ([given] if isinstance(given, str) else given)
                ]
                found[name] = file[0] if isinstance(given, str) else tuple(file)
        return found

    async def _computed(self, function: str, request: BaseModel, model: str | None) -> dict[str, Any]:
        """A request's document, from a process with limits that ends with the client. `model`: what it loads, if it does."""
        cancelled = threading.Event()

        def pulse() -> None:
            if cancelled.is_set():
                raise InterruptedError("the client is gone")

        def computed() -> dict[str, Any]:
            allowed = limits.UNLIMITED
            if self.service.roots() is not None:
                allowed = limits.from_environment()
                allowed = dataclasses.replace(allowed, seconds=max(allowed.seconds, _MEASURE_SECONDS))
            with self.service.computing(pulse):
                return guarded.call(
                    function,
                    {"request": request.model_copy(update=self._resolved(request, model))},
                    dict[str, Any],
                    field="model" if model else next(name for name in _VECTORS if name in type(request).model_fields),
                    imports=guarded.TABLES if model is None else _MODEL_MODULES,
                    allowed=allowed,
                    pulse=pulse,
                )

        try:
            return await asyncio.get_running_loop().run_in_executor(_MEASURING, computed)
        finally:
            cancelled.set()

    def launch_runs(
        self,
        method: list[str],
        model: str = "demo/tiny-bert",
        task: str = "demo/acceptability",
        params: dict[str, Any] | None = None,
        seeds: list[int] | None = None,
        data: str | None = None,
        experiment: str | None = None,
        settings: Settings | None = None,
        repeat: bool = False,
    ) -> dict[str, Any]:
        """Fine-tune: one run per method, parameter value and seed. They are queued, and carried out while this server or the app runs.

        method: slugs of the catalogue, "baseline" for none. params: of the method, each a value or a list of values to sweep; only
        with one method besides the baseline. seeds: default 0; three or more for a comparison. settings: such as epochs,
        learning_rate, max_train; with the task "own", own: the columns of the files in data. repeat: also launch runs that exist
        already; without it their ids are returned as "existing", and experiment is null if there is nothing else to launch.
        """
        self.service.require()
        group = None if experiment is None else one_line(experiment, "experiment")
        set_by_user = {} if settings is None else {name: getattr(settings, name) for name in settings.model_fields_set}
        if set_by_user.get("own") is not None and task != tasks.OWN:
            raise InputError(f"settings.own: is for the task '{tasks.OWN}' (got '{task}')", field="settings.own")
        own = [slug for slug in method if slug != "baseline"]
        if params and len(own) != 1:
            raise InputError("params: give exactly one method besides the baseline", field="params")
        chosen = [(slug, params or {} if slug in own else {}) for slug in method]
        configs = planning.expand([model], [task], chosen, seeds or [0], data=data, checks=self._checks, **set_by_user)
        known = {} if repeat else self.store.existing(configs)
        new = [config for config in configs if config.identity not in known]
        ids = self.service.launch(new, group=group or experiment_name(new), new=group is None)
        return {
            "experiment": self.store.get(ids[0]).group if ids else None,
            "ids": ids,
            "existing": list(dict.fromkeys(known.values())),
        }

    def stop_run(self, id: str) -> dict[str, Any]:
        """Stop a run after its current optimiser step, or take it out of the queue. It can be resumed."""
        self.service.stop(id)
        return documents.document([documents.of_run(self.store, id)])

    def resume_run(self, id: str) -> dict[str, Any]:
        """Queue a stopped, failed or lost run again. It continues from its last checkpoint."""
        self.service.resume(id)
        return documents.document([documents.of_run(self.store, id)])


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
