"""`isoviz train` and `isoviz sweep`: runs are planned, then trained one after another in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel

from isoviz import recipes, tasks
from isoviz.commands.options import Quiet, StoreOption
from isoviz.commands.output import describe, print_json, progress_bar
from isoviz.config import RunConfig
from isoviz.errors import InputError, StoreError
from isoviz.events import Event
from isoviz.operations.operation import argument
from isoviz.operations.settings import Settings
from isoviz.runs import planning
from isoviz.runs.naming import experiment_name

if TYPE_CHECKING:
    from isoviz.operations.access.service import Service
    from isoviz.runs.rows import RunRow
    from isoviz.runs.store import Store

_FIELDS: Final = RunConfig.model_fields


class _Planned(BaseModel):
    """What is trained, and how; the settings follow."""

    model: Annotated[str, argument(str(_FIELDS["model"].description), "MODEL")] = _FIELDS["model"].default
    task: Annotated[str, argument(str(_FIELDS["task"].description), "TASK")] = _FIELDS["task"].default
    data: Annotated[str | None, argument(f"{_FIELDS['data'].description} For --task own also one file.", "DIR")] = None
    method: Annotated[str, argument(str(_FIELDS["method"].description), "SLUG")] = _FIELDS["method"].default
    set: Annotated[tuple[str, ...], argument("a parameter of the method", "NAME=VALUE", append=True)] = ()
    seeds: Annotated[tuple[int, ...], argument("one run per seed", "N", shown_default="0")] = (0,)
    recipe: Annotated[
        str | None, argument(f"use a paper's settings for everything not given here: {', '.join(recipes.RECIPES)}")
    ] = None


class TrainRequest(Settings, _Planned):
    """The options of `train`."""

    queue: Annotated[bool, argument("queue the runs for workers or the app; train nothing here")] = False
    repeat: Annotated[bool, argument("with --queue: also queue runs that exist already")] = False
    store: StoreOption = None
    quiet: Quiet = False


class SweepRequest(TrainRequest):
    """The options of `sweep`."""

    grid: Annotated[tuple[str, ...], argument("values of one method parameter", "NAME=V1,V2,...", append=True)]


def sweep(request: SweepRequest) -> int:
    """As `run`, over a grid of parameters."""
    return run(request)


def run(request: TrainRequest) -> int:
    """Start the runs. Returns 0 if all finish, else 1. With `--queue` they wait for workers, and it returns 0.

    The first Ctrl-C or SIGTERM asks the run at hand to stop, which leaves a checkpoint, and ends the command; the second ends it
    at once. `runs stop` does the same from elsewhere.
    """
    if request.repeat and not request.queue:
        raise InputError("repeat: only with --queue", field="repeat")
    configs = plan(request)
    from isoviz.operations.access.service import of_command_line
    from isoviz.runs.store import Store

    store = Store(request.store)
    service = of_command_line(store)
    check_models(configs)
    if request.queue:
        return _queue(store, service, configs, request)
    if not request.quiet:
        print(_runs(len(configs)), file=sys.stderr)
    rows = launch_and_execute(store, service, configs, _group(configs), quiet=request.quiet)
    report(store, rows, request.quiet)
    return 0 if all(row.status == "finished" for row in rows) else 1


def _queue(store: Store, service: Service, configs: list[RunConfig], request: TrainRequest) -> int:
    """Queue the runs that do not exist yet, or all with `--repeat`, and print their ids."""
    from isoviz.operations import documents

    known = {} if request.repeat else store.existing(configs)
    new = [config for config in configs if config.identity not in known]
    rows = [store.get(run_id) for run_id in service.launch(new, group=_group(new), new=True)]
    existing = list(dict.fromkeys(known.values()))
    if request.quiet:
        print_json(documents.document([documents.as_json(row, None) for row in rows]) | {"existing": existing})
        return 0
    for row in rows:
        print(f"{row.id}  {row.name}")
    name = f" as experiment {rows[0].group}" if rows and rows[0].group else ""
    print(f"{_runs(len(rows))} queued{name}", file=sys.stderr)
    if existing:
        print(f"skipped, already in the store (--repeat includes them): {' '.join(existing)}", file=sys.stderr)
    return 0


def launch_and_execute(
    store: Store, service: Service, configs: Sequence[RunConfig], group: str | None, *, quiet: bool
) -> list[RunRow]:
    """Launch runs and execute them here, one after another. After a stop, those that have not started are stopped too.

    Returns the runs that were begun, as they ended.
    """
    from isoviz.runs.gentle_stop import gentle_stop
    from isoviz.runs.recovery import mark_lost

    mark_lost(store)
    owner = f"command line, process {os.getpid()}"
    rows: list[RunRow] = []
    with gentle_stop(say) as stop:
        ids = service.launch(configs, group=group, new=True, claim=owner)
        try:
            for run_id in ids:
                rows.append(execute_here(store, run_id, owner, stop, quiet=quiet))
                if stop() or rows[-1].status == "stopped":
                    break
        finally:
            for waiting in ids[len(rows) :]:
                service.stop(waiting)
    return rows


def report(store: Store, rows: Sequence[RunRow], json: bool) -> None:
    """Print all runs as one document, or how to compare several."""
    from isoviz.operations import documents

    if json:
        print_json(documents.document([documents.as_json(row, documents.started_of(store, row.id)) for row in rows]))
    elif len(rows) > 1:
        print(f"\nisoviz compare {rows[0].group} says whether they differ.")


def plan(request: TrainRequest) -> list[RunConfig]:
    """The runs that a request describes, validated."""
    params: dict[str, Any] = {}
    for text in request.set:
        name, values = planning.parse_grid(text)
        if len(values) > 1:
            raise InputError(
                f"--set takes one value (got '{text}'); use `sweep --grid {text}` for several", field="set"
            )
        params[name] = values[0]
    if isinstance(request, SweepRequest):
        params |= dict(map(planning.parse_grid, request.grid))
    if not request.queue:
        import torch  # noqa: F401  # this process trains; `devices.describe` then needs no second one
    common = dict(recipes.get(request.recipe).settings) if request.recipe else {}
    common |= {name: getattr(request, name) for name in planning.OPTIONS if name in request.model_fields_set}
    return planning.expand(
        [request.model],
        [request.task],
        [(request.method, params)],
        request.seeds,
        data=request.data,
        own=request.own,
        trains_here=not request.queue,
        **common,
    )


def check_models(configs: Sequence[RunConfig]) -> None:
    """Download models, and refuse those whose checkpoint does not match unless random weights are allowed, before any run is created."""
    from isoviz.models import adapter, sources

    with progress_bar() as progress:
        for model in dict.fromkeys(config.model for config in configs):
            sources.fetch(sources.resolve(model), progress)
    kinds = {(one.model, tasks.get(one.task, one.own).kind) for one in configs if not one.allow_random}
    for model, kind in sorted(kinds):
        adapter.require_fit(sources.resolve(model), kind)


def execute_here(store: Store, run_id: str, owner: str, stop: Callable[[], bool], quiet: bool) -> RunRow:
    """Claim a reserved or queued run and execute it here, with a progress line on stderr unless `quiet`.

    Args:
        stop: whether this command was asked to stop (`isoviz.runs.gentle_stop`).

    Raises:
        StoreError: another process took it.
    """
    from isoviz import devices
    from isoviz.runs.execution import execute

    if store.claim(owner, devices.describe().slots[0].name, id=run_id) is None:
        raise StoreError(f"run '{run_id}' cannot run here: it is {store.get(run_id).status}")
    with _progress_line(store.get(run_id), quiet) as show_on_line:

        def show(event: Event) -> None:
            with suppress(OSError):  # the terminal may be gone
                show_on_line(event)

        execute(store, run_id, tell=show, stop=stop)
    row = store.get(run_id)
    if not quiet:
        print(describe(store.summary(row.id)))
    elif row.error:
        say(f"run {row.id} {row.status}: {row.error.get('message', '')} {row.error.get('advice', '')}".rstrip())
    if row.status == "running":  # details are in its log; the next command marks it as lost
        say(f"run {row.id}: how it ended could not be written to the store. Free disk space, or wait for the database;")
        say(f"then `isoviz runs resume {row.id}` continues from the last checkpoint.")
    return row


def say(line: str) -> None:
    """Print a line on stderr, ignoring errors: a run must save its checkpoint even if the terminal was closed."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _progress_line(row: RunRow, quiet: bool) -> Iterator[Callable[[Event], None]]:
    """One tqdm bar for a run; what it gives takes the run's events."""
    from tqdm import tqdm

    title = f"{row.config.method} seed {row.config.seed}"
    with tqdm(total=None, desc=title, unit="step", disable=quiet, file=sys.stderr) as bar:

        def show(event: Event) -> None:
            if event.kind == "entered" and event.phase in ("loading", "tokenising"):
                bar.set_postfix_str(f"{event.phase} {event.detail}".strip())
            elif event.kind == "resumed" and event.warning:
                bar.write(f"  {event.warning}", file=sys.stderr)
            elif event.kind == "started":
                bar.set_postfix_str("")
                bar.total = event.total_steps
                bar.update(event.first_step - bar.n)
            elif event.kind == "stepped":
                bar.update(event.step - bar.n)
                bar.set_postfix(loss=f"{event.losses['total']:.3f}", refresh=False)
            elif event.kind == "evaluated" and event.metrics.get(event.primary) is not None:
                score = f"{event.primary} {event.metrics[event.primary]:.3f}"
                bar.write(f"  epoch {event.epoch}: {score}", file=sys.stderr)

        yield show


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def _group(configs: list[RunConfig]) -> str | None:
    return experiment_name(configs) if len(configs) > 1 else None
