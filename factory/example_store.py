"""Packs a store's finished runs into the bundled read-only examples: one SQLite file, and the few arrays that pages read.

It trains nothing. To keep the file small it omits data that no page shows: most steps, clouds without curves, checkpoints,
logs, and digits beyond the fifth.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, create_engine, insert

from isoviz import __version__, studies
from isoviz.config import RunConfig
from isoviz.demo import EXAMPLE
from isoviz.events import Evaluated, Event, Finished, Measured, Resumed, Started, Stepped, parse_event
from isoviz.exploring.request import ViewRequest
from isoviz.jobs.results import ARRAYS, FACTS
from isoviz.metrics.record import Measurement, Reading
from isoviz.runs import schema, summaries
from isoviz.runs.examples import ABOUT, DATABASE, GROUP, METHODS, SWEEP
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from isoviz.studies import records
from isoviz.studies.result import Result
from isoviz.studies.study import TrainedStudy
from isoviz.training import predictions

MOST_BYTES: Final = 15_000_000
STEPS, STEPS_OF_STUDY = 48, 12
"""Number of reported steps kept per run; fewer for a study's run, whose curve is rarely viewed."""
EV_SHOWN, EV_OF_STUDY = 50, 20
"""Values kept of each spectrum during training, at most what `dashboard.server.routes` sends. A run's result keeps all."""
DIGITS: Final = 5
DIGITS_OF_CURVES: Final = 4
DIGITS_OF_RULERS: Final = 6
WITH_EMBEDDINGS: Final = ("baseline", "isobn", "istar")
"""Methods whose first run on the first task is the default in What-if."""
TOKENS_KEPT: Final = 300
"""Number of points per token cloud in the Explore view."""
VIEW: Final = ViewRequest("demo/tiny-bert", "demo/acceptability")
"""What Explore's form asks for at first."""


def pack(source: Path, results: Path, target: Path) -> int:
    """Write the examples from the store and the studies' results; returns their size in bytes.

    Args:
        source: the store's folder.
        results: folder with the results of studies without training; it need not exist.
        target: written anew.
    """
    store = Store(source)
    chosen = choose(store.list(status="finished", order="oldest"))
    if not any(chosen.values()):
        raise SystemExit(f"record_examples: no finished run of the experiments or studies in {source}")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    _write_database(store, chosen, target)
    embedded = [_write_embeddings(store, row, target) for row in chosen[METHODS] if _is_first(row, WITH_EMBEDDINGS)]
    write_view(target)
    write_demo_vectors(target)
    write_demo_rulers(target)
    slugs = _write_results(store, results, target / "studies")
    about = {
        "recorded": datetime.fromtimestamp(max(row.ended or 0.0 for rows in chosen.values() for row in rows), UTC)
        .date()
        .isoformat(),
        "isoviz": __version__,
        "processor": _processor(),
        "runs": sum(map(len, chosen.values())),
        "experiments": [name for name, rows in chosen.items() if rows],
        "embeddings": embedded,
        "studies": slugs,
    }
    (target / ABOUT).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return _size(target)


def example_id(run_id: str) -> str:
    """The id of the example that was this run."""
    return EXAMPLE + run_id


# ------------------------------------------------------------------------------------------------------ which runs


def choose(rows: Iterable[RunRow]) -> dict[str, list[RunRow]]:
    """Name of an example experiment → its runs, the newest finished run per configuration. A study's runs are listed under the
    study that trained them, although other studies use them too.
    """
    titles = {entry.slug: f"{GROUP}{entry.source.name}, {entry.place}" for entry in reversed(studies.listed())}
    titles |= {entry.study.slug: f"{GROUP}{entry.source.name}, {entry.place}" for entry in reversed(studies.listed())}
    study_runs = _study_runs()
    groups = {name.removeprefix(GROUP).casefold(): name for name in (METHODS, SWEEP)}
    chosen: dict[tuple[str, Any], tuple[str, RunRow]] = {}
    for row in rows:
        group = row.group or ""
        if title := groups.get(group.casefold()):
            chosen[title, row.config.identity] = title, row
        elif _asked(row.config) in study_runs and (title := titles.get(group.rsplit(" ", 1)[0])):
            chosen["study", row.config.identity] = title, row
    order = [METHODS, SWEEP, *dict.fromkeys(titles[entry.slug] for entry in studies.listed())]
    return {title: [row for name, row in chosen.values() if name == title] for title in order}


def _study_runs() -> set[Any]:
    trained = {entry.study for entry in studies.listed() if isinstance(entry.study, TrainedStudy)}
    return {_asked(config) for study in trained for config in study.declared("quick")}


def _asked(config: RunConfig) -> tuple[str, int]:
    """Key shared by a run and its declaration, which does not fix the precision."""
    return config.model_copy(update={"precision": "auto"}).identity


def _is_first(row: RunRow, methods: Sequence[str]) -> bool:
    """Seed 0 of one of these methods on a classification of single texts."""
    return row.config.seed == 0 and row.config.method in methods and row.config.task == VIEW.task


# -------------------------------------------------------------------------------------------------------- database


def write_store(rows: Iterable[tuple[Store, RunRow]], file: Path) -> None:
    """Write finished runs of stores as a new store, with the numbers and curves that pages read but without files."""
    with _new_database(file) as connection:
        for store, row in rows:
            _write_run(connection, row.id, row.group or "", row, thinned(_events(store, row.id), (), is_study=True))


def _write_database(store: Store, chosen: Mapping[str, list[RunRow]], target: Path) -> None:
    with _new_database(target / DATABASE) as connection:
        for title, row in ((title, row) for title, rows in chosen.items() for row in rows):
            run_id = example_id(row.id)
            epochs = _copy_files(store.folder_of(row.id), target / "runs" / run_id, row, title)
            events = thinned(_events(store, row.id), epochs, is_study=title not in (METHODS, SWEEP))
            _write_run(connection, run_id, title, row, events)


@contextmanager
def _new_database(file: Path) -> Iterator[Connection]:
    """A connection to a new database with the tables of a store; made compact at the end."""
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        schema.metadata.create_all(connection)
        meta = {schema.SCHEMA: str(schema.VERSION), schema.REVISION: "0"}
        connection.execute(insert(schema.meta), [{"key": key, "value": value} for key, value in meta.items()])
        yield connection

    # VACUUM must run outside a transaction
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("PRAGMA journal_mode = DELETE")
        connection.exec_driver_sql("PRAGMA page_size = 32768")  # rows of a few kilobytes fill it well
        connection.exec_driver_sql("VACUUM")
    engine.dispose()


def _write_run(
    connection: Connection, run_id: str, title: str, row: RunRow, events: Sequence[tuple[float, Event]]
) -> None:
    """Write one run under this id and experiment, with its events."""
    result = row.result
    assert result is not None
    progress = row.progress.model_dump(mode="json") if row.progress else {}
    rounded = _compact(_result(result))
    shown = summaries.columns(row.config)
    started = [one for _, one in events if isinstance(one, Started)][:1]
    shown["summary"] = summaries.after(shown["summary"], [*started, Finished.model_validate_json(rounded)])
    connection.execute(
        insert(schema.runs),
        {
            "id": run_id,
            "name": row.name,
            "group_name": title,
            "status": "finished",
            "config": row.config.model_dump_json(),
            **shown,
            "created": row.created,
            "queued": row.queued,
            "started": row.started,
            "ended": row.ended,
            "resume": False,
            "attempt": 1,
            "device": row.device,
            "last_seq": len(events),
            "tags": "[]",
            "note": "",
            "progress": _compact(progress),
            "result": rounded,
        },
    )
    lines = [
        {"run_id": run_id, "seq": seq, "time": round(moment, 2), "body": _compact(_body(one), DIGITS_OF_CURVES)}
        for seq, (moment, one) in enumerate(events, start=1)
    ]
    connection.execute(insert(schema.events), lines)


def _body(one: Event) -> dict[str, Any]:
    """The fields for `parse_event`; the kind comes first, because the store expects it there."""
    return {"kind": one.kind, **one.model_dump(mode="json", exclude_defaults=not isinstance(one, Started))}


def _result(result: Finished) -> dict[str, Any]:
    """The row for the table of runs. Missing fields count as unknown, so `collapsed` is always set."""
    return {**result.model_dump(mode="json", exclude={"kind"}, exclude_defaults=True), "collapsed": result.collapsed}


def _events(store: Store, run_id: str) -> list[tuple[float, Event]]:
    events_: list[tuple[float, Event]] = []
    cursor = 0
    while rows := store.events(run_id, cursor):
        events_ += [(data["time"], parse_event(data)) for _, data in rows]
        cursor = rows[-1][0]
    return events_


def thinned(
    events: Sequence[tuple[float, Event]], epochs: Iterable[int], is_study: bool = False
) -> list[tuple[float, Event]]:
    """The events that a page reads, in order.

    Args:
        epochs: epochs whose arrays are bundled; other epochs name no file.
        is_study: of a study's run, of which less is kept.
    """
    steps, shares = (STEPS_OF_STUDY, EV_OF_STUDY) if is_study else (STEPS, EV_SHOWN)
    places = [index for index, (_, one) in enumerate(events) if isinstance(one, Stepped)]
    keep = (
        {places[int(i)] for i in np.linspace(0, len(places) - 1, min(steps, len(places))).round()} if places else set()
    )
    selected: list[tuple[float, Event]] = []
    for index, (moment, one) in enumerate(events):
        match one:
            case Stepped():
                selected += [(moment, one)] if index in keep else []
            case Measured():
                arrays = one.arrays if one.epoch in epochs else ""
                selected.append(
                    (moment, one.model_copy(update={"isotropy": _drawn(one.isotropy, shares), "arrays": arrays}))
                )
            case Started():
                selected.append((moment, one.model_copy(update={"versions": {"isoviz": __version__, **one.versions}})))
            case Finished():  # its numbers are the run's result
                selected.append((moment, one.model_copy(update={"isotropy": Measurement(), "weights": None})))
            case Evaluated() | Resumed():
                selected.append((moment, one))
    return selected


def _drawn(isotropy: Measurement, shares: int) -> Measurement:
    """The numbers shown as curves, and the shown part of the spectra."""
    clouds = {}
    for name in ("head", "layers"):
        if (cloud := isotropy.cloud(name)) is not None:
            readings = {slug: Reading(value=_cut(reading.value, shares)) for slug, reading in cloud.readings.items()}
            known = {slug: reading for slug, reading in readings.items() if reading.value is not None}
            clouds[name] = cloud.model_copy(update={"readings": known, "dimensions": None})
    return isotropy.model_copy(update={"clouds": clouds})


def _cut(value: Any, shares: int) -> Any:
    return value[:shares] if isinstance(value, tuple) else value


def _compact(value: Any, digits: int = DIGITS) -> str:
    return json.dumps(rounded(value, digits), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def rounded(value: Any, digits: int) -> Any:
    """JSON data with all non-integer numbers rounded to this many significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item, digits) for item in value]
    return value


# ----------------------------------------------------------------------------------------------------------- files


def _copy_files(folder: Path, target: Path, row: RunRow, title: str) -> set[int]:
    """Write a run's bundled arrays and predictions; returns the epochs of the arrays."""
    if title != METHODS:
        return set()
    if (folder / predictions.FILE).is_file():
        (target / predictions.FILE).parent.mkdir(parents=True)
        shutil.copy(folder / predictions.FILE, target / predictions.FILE)
    if row.config.seed != 0:
        return set()
    every = _is_first(row, WITH_EMBEDDINGS)
    files = sorted((folder / "arrays").glob("epoch-*.safetensors"))
    epochs = set()
    for file in files if every else files[-1:]:
        shutil.copy(file, target / "arrays" / file.name)
        epochs.add(int(re.findall(r"\d+", file.stem)[0]))
    return epochs


def _write_embeddings(store: Store, row: RunRow, target: Path) -> str:
    """The vectors that the run's head reads, and the head; the example's id."""
    from isoviz.whatif.embeddings import compute as encode_run
    from isoviz.whatif.request import STORE, request_for

    starts = store.events_of_kind(row.id, Started, limit=1)
    request = request_for(row, store.folder_of(row.id), starts[0].data_fingerprint if starts else "")
    facts, arrays = encode_run(request, _silent)
    name = example_id(row.id)
    _write_result(
        target / STORE.name / name, {**facts, "run": name}, {key: _halved(value) for key, value in arrays.items()}
    )
    return name


def write_view(target: Path) -> int:
    """Write Explore's view of the bundled encoder on a demo task; returns its size in bytes."""
    from isoviz.exploring import measuring, points, results

    shutil.rmtree(target / results.STORE.name, ignore_errors=True)
    facts, arrays = measuring.compute(VIEW, _silent, lambda facts, arrays: None)
    tokens = points.unpacked(arrays[points.TOKENS])
    places = np.linspace(0, len(tokens) - 1, min(TOKENS_KEPT, len(tokens))).round().astype(int)
    kept = {
        name: value[places] if name.endswith(".tokens.cloud") and len(value) == len(tokens) else value
        for name, value in arrays.items()
    }
    kept[points.TOKENS] = points.packed(tokens.iloc[places].reset_index(drop=True))
    _write_result(
        target / results.STORE.name / (EXAMPLE + "view"), facts, {name: _halved(value) for name, value in kept.items()}
    )
    return _size(target / results.STORE.name)


def write_demo_vectors(target: Path) -> int:
    """Write the vectors of the demo sets for What-if, in half precision; returns their size in bytes."""
    from isoviz.vectors import STORE, demo_sets
    from isoviz.whatif.texts import FIRST_LAYER, TextsRequest, compute

    shutil.rmtree(target / STORE.name, ignore_errors=True)
    for slug, key in demo_sets.RECORDED.items():
        request = TextsRequest(slug, layer=FIRST_LAYER)
        facts, arrays = compute(request, _silent)
        facts["facts"]["request"] = request.as_json()
        _write_result(
            target / STORE.name / key, facts, {name: _halved(np.asarray(value)) for name, value in arrays.items()}
        )
    return _size(target / STORE.name)


def write_demo_rulers(target: Path) -> int:
    """Write the rulers of the demo sets' vectors, which are there already; returns their size in bytes."""
    from isoviz.operations.jobs import SetRequest, facts_of
    from isoviz.readouts.ruler.results import STORE
    from isoviz.vectors import demo_sets

    shutil.rmtree(target / STORE.name, ignore_errors=True)
    for key in demo_sets.RECORDED.values():
        _write_result(target / STORE.name / key, rounded(facts_of(SetRequest(key)), DIGITS_OF_RULERS), {})
    return _size(target / STORE.name)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _halved(values: NDArray[Any]) -> NDArray[Any]:
    """Vectors in half precision; small arrays and other data unchanged."""
    return values.astype(np.float16) if values.ndim == 2 and values.dtype == np.float32 else values


def _write_result(folder: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, folder / ARRAYS)
    (folder / FACTS).write_text(json.dumps(facts, ensure_ascii=False), encoding="utf-8")


def _silent(*_: object) -> None:
    return None


def _write_results(store: Store, source: Path, target: Path) -> list[str]:
    """The studies' results, in which runs have the ids of the examples; their slugs. Of a study that trains, the picture of its runs."""
    target.mkdir(parents=True)
    slugs = []
    for study in dict.fromkeys(entry.study for entry in studies.listed()):
        file = source / f"{study.slug}.json"
        if isinstance(study, TrainedStudy):
            result = study.draw(records.read(store, study.configs("quick")), "quick")
        elif file.is_file():
            result = Result.model_validate_json(file.read_text(encoding="utf-8"))
        else:
            continue
        if result.planned and not result.runs:
            continue
        result_ = result.model_copy(update={"runs": [example_id(run) for run in result.runs]})
        (target / file.name).write_text(result_.model_dump_json(), encoding="utf-8")
        slugs.append(study.slug)
    return slugs


def _processor() -> str:
    from benchmarks._report import processor

    return f"{os.cpu_count()} cores, {processor()}"
