"""`isoviz train` and `isoviz sweep`: plan, then run one after another in this process."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoviz import recipes, tasks
from isoviz.commands.output import print_json, progress_bar
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import Event
from isoviz.runs import planning
from isoviz.tasks.protocol import OwnTask

if TYPE_CHECKING:
    from isoviz.runs.rows import RunRow
    from isoviz.runs.store import Store


def run(options: argparse.Namespace) -> int:
    """Start the runs; 0 when all finished, 1 when one did not."""
    configs = plan(options)
    from isoviz.runs.store import Store

    store = Store(options.store)
    fetch_models(configs)
    check_weights(configs)
    if not options.json:
        print(f"{len(configs)} run{'s' if len(configs) > 1 else ''}", file=sys.stderr)
    owner = f"command line, process {os.getpid()}"
    ids = store.create(configs, group=_group(configs), claim=owner)
    rows = []
    for run_id in ids:
        rows.append(carry_out(store, run_id, owner, quiet=options.json))
        if rows[-1].status == "stopped":  # Ctrl-C, or `runs stop`, ends the whole command
            for waiting in ids[len(rows) :]:
                store.request_stop(waiting)
            break
    report(store, rows, options.json)
    return 0 if all(row.status == "finished" for row in rows) else 1


def report(store: Store, rows: Sequence[RunRow], json: bool) -> None:
    """What the command says at its end: every run as one document, or a table where there are several runs."""
    from isoviz.commands import run_report

    started = {row.id: run_report.started_of(store, row.id) for row in rows}
    if json:
        document = run_report.document([run_report.as_json(row, started[row.id]) for row in rows])
        print_json(document | ({"summary": run_report.summary_json(rows)} if len(rows) > 1 else {}))
    elif len(rows) > 1:
        run_report.print_summary(rows, next(filter(None, started.values()), None))


def plan(options: argparse.Namespace) -> list[RunConfig]:
    """The runs that the options ask for, validated."""
    params: dict[str, Any] = {}
    for text in options.set:
        name, values = planning.parse_grid(text)
        if len(values) > 1:
            raise InputError(
                f"--set takes one value (got '{text}'); use `sweep --grid {text}` for several", field="set"
            )
        params[name] = values[0]
    for text in getattr(options, "grid", None) or []:
        name, values = planning.parse_grid(text)
        params[name] = values
    common = dict(recipes.get(options.recipe).settings) if options.recipe else {}
    common |= {name: getattr(options, name) for name in planning.OPTIONS if getattr(options, name, None) is not None}
    return planning.expand(
        [options.model],
        [options.task],
        [(options.method, params)],
        options.seeds,
        data=options.data,
        own=own_columns(options),
        **common,
    )


def own_columns(options: argparse.Namespace) -> OwnTask | None:
    """The columns of `--task own`; `InputError` for options of it with another task, or without those it needs."""
    given = {name: getattr(options, f"own.{name}", None) for name in planning.OWN_OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    if options.task != tasks.OWN:
        for name in given:
            raise InputError(f"own.{name}: is for --task {tasks.OWN} (got --task {options.task})", field=f"own.{name}")
        return None
    for name in ("text", "label"):
        if name not in given:
            raise InputError(f"own.{name}: --task {tasks.OWN} needs the column's name", field=f"own.{name}")
    return OwnTask.checked(**given)


def fetch_models(configs: Sequence[RunConfig]) -> None:
    """Bring models of the hub onto this machine before any run exists; a download that fails is bad input, no failed run."""
    from isoviz.models import sources

    with progress_bar() as progress:
        for model in dict.fromkeys(config.model for config in configs):
            sources.fetch(sources.resolve(model), progress)


def check_weights(configs: Sequence[RunConfig]) -> None:
    """Refuse a model whose checkpoint does not fit before any run exists, unless random weights are allowed."""
    from isoviz.models import fit, sources

    kinds = {(one.model, tasks.get(one.task, one.own).kind) for one in configs if not one.allow_random}
    for model, kind in sorted(kinds):
        fit.require(sources.resolve(model), kind)


def carry_out(store: Store, run_id: str, owner: str, quiet: bool) -> RunRow:
    """Claim a reserved run and execute it here, with a progress line on stderr unless `quiet`.

    The first Ctrl-C asks the run to stop, which leaves a checkpoint; the second ends it at once.
    """
    from isoviz.commands import run_report
    from isoviz.runs.execution import execute
    from isoviz.training import devices, train

    store.claim(owner, devices.describe().slots[0].name, id=run_id)
    with ProgressLine(store.get(run_id), quiet) as line, _gentle_interrupt() as interrupted:

        def observed(config: RunConfig, emit: Any, should_stop: Any, run_dir: Path, resume: bool = False) -> None:
            def tell(event: Event) -> None:
                line.show(event)
                emit(event)

            train(config, tell, lambda: bool(interrupted) or should_stop(), run_dir, resume)

        execute(store, run_id, train=observed)
    row = store.get(run_id)
    if not quiet:
        print(run_report.describe(row, run_report.started_of(store, row.id)))
    elif row.error:
        print(f"run {row.id} {row.status}: {row.error.get('message', '')}", file=sys.stderr)
    return row


@contextmanager
def _gentle_interrupt() -> Iterator[list[int]]:
    """A list that is non-empty once Ctrl-C was pressed; pressing it again interrupts as usual."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: object) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("stopping after this step; press Ctrl-C again to end at once", file=sys.stderr)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


class ProgressLine:
    """One tqdm bar per run, fed by its events."""

    def __init__(self, row: RunRow, quiet: bool) -> None:
        from tqdm import tqdm

        self.bar = tqdm(
            total=None, desc=f"{row.config.method} seed {row.config.seed}", unit="step", disable=quiet, file=sys.stderr
        )

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *details: object) -> None:
        self.bar.close()

    def show(self, event: Event) -> None:
        """Move the bar, and say what there is to wait for before it moves."""
        if event.kind == "entered" and event.phase in ("loading", "tokenising"):
            self.bar.set_postfix_str(f"{event.phase} {event.detail}".strip())
        elif event.kind == "started":
            self.bar.set_postfix_str("")
            self.bar.total = event.total_steps
            self.bar.update(event.first_step - self.bar.n)
        elif event.kind == "stepped":
            self.bar.update(event.step - self.bar.n)
            self.bar.set_postfix(loss=f"{event.losses['total']:.3f}", refresh=False)
        elif event.kind == "evaluated" and event.metrics.get(event.primary) is not None:
            self.bar.write(
                f"  epoch {event.epoch}: {event.primary} {event.metrics[event.primary]:.3f}", file=sys.stderr
            )


def _group(configs: list[RunConfig]) -> str | None:
    return planning.new_group() if len(configs) > 1 else None
