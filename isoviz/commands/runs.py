"""`isoviz runs`: list, show, stop, resume, delete, export and cite runs; reorder the queue; save a model; add seeds."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from isoviz.commands.options import add_store, whole
from isoviz.commands.output import lines_of, print_json, print_runs
from isoviz.errors import InputError
from isoviz.formatting import decimals
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.recovery import mark_lost
from isoviz.runs.store import Store, StoreUnavailableError
from isoviz.runs.summaries import TIMING, RunSummary

# Modules that `list` does not need, such as the catalogues and numpy, are imported where they are used: they would double its time.
if TYPE_CHECKING:
    from isoviz.access.service import Service

LISTED: Final = 100
"""Default number of runs that `list` shows."""
_ISOTROPY: Final = ("isoscore", "isoscore_star")
"""The measure of isotropy in `list`; `show` has them all."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("list", "the newest runs"),
        ("show", "one run"),
        ("stop", "stop a run after its current optimiser step; a second time, at once"),
        ("resume", "go on here"),
        ("delete", "remove a run and its files"),
    ):
        action = actions.add_parser(name, help=text)
        if name == "list":
            action.add_argument(
                "--limit", type=whole, metavar="N", help="newest N runs; 0 for all (default: 100, with --json all)"
            )
        else:
            action.add_argument("id", metavar="ID")
        add_store(action)
    for name, text, choices in (
        ("move", "move a run in the queue", ("first", "up", "down", "last")),
        ("priority", "set a queued run's priority; higher ones start first", ("high", "normal", "low")),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("id", metavar="ID")
        action.add_argument("to", choices=choices)
        add_store(action)
    seeds = actions.add_parser("add-seeds", help="train every setup of an experiment with more seeds, here")
    seeds.add_argument("experiment", metavar="EXPERIMENT", help="its name, as on the Experiments page")
    seeds.add_argument("--count", type=whole, default=3, metavar="N", help="seeds to add (default: 3)")
    add_store(seeds)
    export = actions.add_parser("export", help="runs with all their events, as JSON")
    export.add_argument("ids", nargs="+", metavar="ID")
    add_store(export)
    model = actions.add_parser("save-model", help="write a finished run's model as a transformers directory")
    model.add_argument("id", metavar="ID")
    model.add_argument("--out", required=True, metavar="DIR", help="a new or empty folder")
    add_store(model)
    cite = actions.add_parser("cite", help="BibTeX of the methods, tasks and models of runs")
    cite.add_argument("ids", nargs="+", metavar="ID")
    cite.add_argument("--measures", action="store_true", help="and of every measure that they report")
    add_store(cite)


def run(options: argparse.Namespace) -> int:
    """Carry out one action. Returns 0, or 1 if a resumed run does not finish."""
    store = Store(options.store)
    try:
        mark_lost(store)
    except StoreUnavailableError as error:  # runs can be listed even if the disk is full
        warnings.warn(f"runs whose process is gone are still listed as running: {error}", stacklevel=2)
    return _ACTIONS[options.action](store, options)


def _list(store: Store, options: argparse.Namespace) -> int:
    limit = (None if options.json else LISTED) if options.limit is None else options.limit or None
    if limit is not None and limit < 0:
        raise InputError(f"--limit: expected 0 or more (got {limit})", field="limit")
    if options.json:
        from isoviz.operations import documents

        print_runs(documents.listed(store.list(limit=limit), store.summaries(limit=limit)))
        return 0
    runs = store.summaries(limit=limit)
    for run in runs:
        print(_listed(run))
    if not runs:
        print(f"no runs in {store}", file=sys.stderr)
    elif len(runs) == limit and (total := sum(store.counts().values())) > limit:
        print(f"the newest {limit:,} of {total:,} runs; --limit 0 lists all", file=sys.stderr)
    return 0


def _listed(run: RunSummary) -> str:
    """Print a run in a few lines; numbers have the names of `--json`."""
    if run.unreadable:
        from isoviz.commands import run_report

        return run_report.describe(run)
    isotropy = {name: run.isotropy[name] for name in _ISOTROPY if name in run.isotropy}
    scores = {name: value for name, value in run.metrics.items() if name not in ("loss", "epoch")}
    numbers = [
        f"{name} {decimals(value, places)}"
        for places, values in ((4, scores), (3, isotropy))
        for name, value in values.items()
    ]
    seconds = run.numbers.get(TIMING, {}).get("total_seconds")
    return lines_of(run, [", ".join([*numbers, *([f"{seconds:.1f} s"] if seconds is not None else [])])])


def _show(store: Store, options: argparse.Namespace) -> int:
    from isoviz.commands import run_report
    from isoviz.operations import documents

    if options.json:
        print_json(documents.shown(store, options.id))
    else:
        row = store.get(options.id)
        print(run_report.describe(store.summary(row.id)))
        print(f"    files: {store.folder_of(row.id)} ({store.disk_use(row.id) / 1e6:.1f} MB)")
    return 0


def _service(store: Store) -> Service:
    from isoviz.access.service import of_command_line  # slow to import; `list` and `show` do without

    return of_command_line(store)


def _stop(store: Store, options: argparse.Namespace) -> int:
    from isoviz.operations import documents

    _service(store).stop(options.id)
    status = store.get(options.id).status
    text = f"{options.id}  {'stopping' if status == 'running' else status}"
    return _answer(options, documents.document([documents.of_run(store, options.id)]), text)


def _answer(options: argparse.Namespace, document: dict[str, Any], text: str) -> int:
    if options.json:
        print_json(document)
    else:
        print(text)
    return 0


def _resume(store: Store, options: argparse.Namespace) -> int:
    from isoviz.commands.train import carry_out, say
    from isoviz.operations import documents

    owner = f"command line, process {os.getpid()}"
    waiting = store.get(options.id)
    with gentle_stop(say) as stop:
        if waiting.status != "queued" or waiting.owner is not None:  # a run queued for an app can run here too
            _service(store).resume(options.id, claim=owner)
        row = carry_out(store, options.id, owner, stop, quiet=options.json)
    if options.json:
        print_json(documents.document([documents.of_run(store, options.id)]))
    return 0 if row.status == "finished" else 1


def _reorder(store: Store, options: argparse.Namespace) -> int:
    from isoviz.operations.table import Operations

    do = Operations(store, _service(store))
    change = do.move_run if options.action == "move" else do.set_priority
    document = change(options.id, options.to)
    lines = (f"{place}. {run['id']}  {run['priority']} priority" for place, run in enumerate(document["queue"], 1))
    return _answer(options, document, "\n".join(lines))


def _delete(store: Store, options: argparse.Namespace) -> int:
    _service(store).delete(options.id)
    return _answer(options, {"deleted": [options.id]}, f"{options.id}  deleted")


def _cite(store: Store, options: argparse.Namespace) -> int:
    from isoviz.runs import citing

    rows = [store.get(run_id) for run_id in options.ids]
    measures = {
        slug for row in rows if row.result for cloud in row.result.isotropy.clouds.values() for slug in cloud.readings
    }
    entries = citing.bibtex([row.config for row in rows], measures if options.measures else ())
    return _answer(options, {"entries": entries}, "\n\n".join(entries.values()))


def _save_model(store: Store, options: argparse.Namespace) -> int:
    from isoviz.runs import pretrained

    folder = pretrained.save(store.get(options.id), store.folder_of(options.id), options.out)
    text = f"{folder}: a transformers directory; its README.md says how to load it"
    return _answer(options, {"id": options.id, "folder": str(folder)}, text)


def _export(store: Store, options: argparse.Namespace) -> int:
    from isoviz.operations import documents

    print_json(documents.exported(store, options.ids))
    return 0


def _add_seeds(store: Store, options: argparse.Namespace) -> int:
    from isoviz.access.service import of_command_line
    from isoviz.commands import train
    from isoviz.runs.duplicates import more_seeds

    if options.count < 1:
        raise InputError(f"--count: expected 1 or more (got {options.count})", field="count")
    name = options.experiment
    configs = more_seeds((row.config for row in store.list(group=name, order="oldest")), options.count)
    if not configs:
        raise InputError(f"no experiment '{name}' in the store {store}")
    if not options.json:
        seeds = sorted({config.seed for config in configs})
        print(f"{len(configs)} runs, seeds {seeds[0]} to {seeds[-1]}", file=sys.stderr)
    rows = train.launch_and_carry_out(store, of_command_line(store), configs, name, quiet=options.json, new=False)
    train.report(store, rows, options.json)
    return 0 if all(row.status == "finished" for row in rows) else 1


_ACTIONS: Final[dict[str, Callable[[Store, argparse.Namespace], int]]] = {
    "list": _list,
    "show": _show,
    "stop": _stop,
    "resume": _resume,
    "move": _reorder,
    "priority": _reorder,
    "delete": _delete,
    "export": _export,
    "cite": _cite,
    "save-model": _save_model,
    "add-seeds": _add_seeds,
}
