"""`isoviz runs`: list, show, stop, resume, delete and export runs; save a model."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Final

from isoviz.commands.options import Quiet, StoreOption
from isoviz.commands.output import Answer, describe, print_json
from isoviz.operations.operation import argument
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.recovery import mark_lost
from isoviz.runs.store import Store, StoreUnavailableError

# Modules that `list` does not need, such as the catalogues and numpy, are imported where they are used: they would double its time.
if TYPE_CHECKING:
    from isoviz.operations.access.service import Service

LISTED: Final = 100
"""Default number of runs that `list` shows."""
_ISOTROPY: Final = ("isoscore", "isoscore_star")
"""The measure of isotropy in `list`; `show` has them all."""


Id = Annotated[str, argument("of the run", "ID", positional=True)]
Ids = Annotated[list[str], argument("of the runs", "ID", positional=True)]


def opened(store: str | None) -> Store:
    """The store, in which runs whose process is gone are marked."""
    found = Store(store)
    try:
        mark_lost(found)
    except StoreUnavailableError as error:  # runs can be listed even if the disk is full
        warnings.warn(f"runs whose process is gone are still listed as running: {error}", stacklevel=2)
    return found


def list_runs(
    limit: Annotated[int | None, argument("newest N runs; 0 for all (default: 100, with --json all)", ge=0)] = None,
    quiet: Quiet = False,
    store: StoreOption = None,
) -> Answer:
    """The newest runs."""
    found = opened(store)
    most = (None if quiet else LISTED) if limit is None else limit or None
    if quiet:
        from isoviz.operations import documents

        return Answer(documents.listed(found.list(limit=most), found.summaries(limit=most)))
    runs = found.summaries(limit=most)
    for run in runs:
        print(describe(run, _ISOTROPY))
    if not runs:
        print(f"no runs in {found}", file=sys.stderr)
    elif len(runs) == most and (total := sum(found.counts().values())) > most:
        print(f"the newest {most:,} of {total:,} runs; --limit 0 lists all", file=sys.stderr)
    return Answer({}, lambda: None)


def show(id: Id, store: StoreOption = None) -> Answer:
    """One run."""
    from isoviz.operations import documents

    found = opened(store)

    def text() -> None:
        print(describe(found.summary(id)))
        print(f"    files: {found.folder_of(id)} ({found.disk_use(id) / 1e6:.1f} MB)")

    return Answer(documents.shown(found, id), text)


def _service(store: Store) -> Service:
    from isoviz.operations.access.service import of_command_line  # slow to import; `list` and `show` do without

    return of_command_line(store)


def stop(id: Id, store: StoreOption = None) -> Answer:
    """Stop a run after its current optimiser step."""
    from isoviz.operations import documents

    found = opened(store)
    _service(found).stop(id)
    status = found.get(id).status
    text = f"{id}  {'stopping' if status == 'running' else status}"
    return Answer(documents.document([documents.of_run(found, id)]), text)


def resume(id: Id, quiet: Quiet = False, store: StoreOption = None) -> Answer:
    """Go on here."""
    from isoviz.commands.train import execute_here, say
    from isoviz.operations import documents

    found = opened(store)
    owner = f"command line, process {os.getpid()}"
    waiting = found.get(id)
    with gentle_stop(say) as stops:
        if waiting.status != "queued" or waiting.owner is not None:  # a run queued for an app can run here too
            _service(found).resume(id, claim=owner)
        row = execute_here(found, id, owner, stops, quiet=quiet)
    document = documents.document([documents.of_run(found, id)])
    return Answer(document, lambda: None, code=0 if row.status == "finished" else 1)


def delete(id: Id, store: StoreOption = None) -> Answer:
    """Remove a run and its files."""
    _service(opened(store)).delete(id)
    return Answer({"deleted": [id]}, f"{id}  deleted")


def save_model(
    id: Id, out: Annotated[str, argument("a new or empty folder", "DIR")], store: StoreOption = None
) -> Answer:
    """Write a finished run's model as a transformers directory."""
    from isoviz.runs import pretrained

    found = opened(store)
    folder = pretrained.save(found.get(id), found.folder_of(id), out)
    text = f"{folder}: its README.md says how to load it"
    return Answer({"id": id, "folder": str(folder)}, text)


def export(ids: Ids, quiet: Quiet = False, store: StoreOption = None) -> int:
    """Runs with all their events, as JSON."""
    from isoviz.operations import documents

    print_json(documents.exported(opened(store), ids))
    return 0


ACTIONS: Final = {
    "list": list_runs,
    "show": show,
    "stop": stop,
    "resume": resume,
    "delete": delete,
    "export": export,
    "save-model": save_model,
}
