"""`isoviz measure`: every measure of an array file, or of a model on a task, by layer and pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from isoviz import input_validation, metrics
from isoviz.commands.output import Answer, print_slices, print_table, progress_bar
from isoviz.errors import InputError, listed
from isoviz.exploring.encoders import RUN
from isoviz.formatting import fixed
from isoviz.metrics.each_row import Rows
from isoviz.metrics.measuring import applicable, cannot_be_estimated
from isoviz.metrics.protocol import Metric
from isoviz.metrics.record import CloudRecord
from isoviz.operations.measure import Measured, MeasureRequest, measure
from isoviz.operations.operation import argument
from isoviz.readouts import Annotations, slices
from isoviz.readouts.division import annotations_of
from isoviz.vectors import reading


class MeasureOptions(MeasureRequest):
    """What to measure, and where to keep the measures of each row."""

    rows: Annotated[str | None, argument("write each row's k-occurrence, nearest row and the like as CSV", "FILE")] = (
        None
    )

    @property
    def whole(self) -> bool:
        return super().whole or (self.rows is not None and reading.holds(str(self.embeddings), "embeddings") != "array")


def run(request: MeasureOptions) -> Answer:
    """Measure, with a progress bar."""
    target = None if request.rows is None else input_validation.path(request.rows, "rows")
    if target is not None and request.embeddings is None:
        raise InputError.at("rows", "only with --embeddings")
    if target is not None and not target.parent.is_dir():
        raise InputError.at("rows", f"no folder '{target.parent}'")
    with progress_bar() as progress:
        measured = measure(request, progress)
    of_rows = None if target is None else _write_rows(measured, target)
    document = measured.document | ({} if of_rows is None else {"rows": list(of_rows.sentences)})
    return Answer(document, lambda: _print(request, measured, of_rows), measured.notes)


def _write_rows(measured: Measured, target: Path) -> Rows:
    import pandas as pd

    assert measured.points is not None
    vector_set = measured.vector_set
    annotations = Annotations() if vector_set is None else annotations_of(vector_set)
    try:
        found = slices.rows_of(measured.points, annotations)
    except InputError as error:
        raise InputError.at("rows", str(error).removeprefix("points: ")) from None
    table = pd.DataFrame(found.table())
    if vector_set is not None:
        table = pd.concat([table, vector_set.columns.iloc[found.row].reset_index(drop=True)], axis=1)
    try:
        table.to_csv(target, index=False)
    except OSError as error:
        raise InputError.at("rows", f"'{target}' cannot be written: {error.strerror}") from None
    return found


def _print(request: MeasureOptions, measured: Measured, of_rows: Rows | None) -> None:
    document = measured.document
    cloud = document["cloud"]
    if measured.by_layer:
        commit = f" (commit {cloud['model_revision'][:10]})" if cloud["model_revision"] else ""
        print(f"{request.model}{commit} on {request.task} ({request.split}), {measured.rows} rows, d = {document['d']}")
        shown = [metric for metric in _numbers() if any(metric.slug in one.readings for one in measured.by_layer)]
        print_table(
            ("layer", "pooling", "n", *(metric.heading for metric in shown)),
            (_table_row(one, shown) for one in measured.by_layer),
        )
        print()
    _print_cloud(measured.name, measured.headline)
    if measured.columns:
        _print_line("columns", listed(measured.columns))
    for name in ("labels", "pairs", "queries"):
        if name in document:
            _print_read_outs(name, document[name])
    if measured.slices:
        print_slices(measured.slices)
    if of_rows is not None:
        print(f"rows: {' '.join(of_rows.sentences)} Written to {request.rows}.")
    of_run = str(request.model).startswith(RUN)
    titles = {
        "as_weights": "rows read as output vectors",
        "output_embeddings": "output layer of the run's head" if of_run else "output embeddings",
    }
    for name, title in titles.items():
        if weights := document.get(name):
            _print_partition(title, weights)


def _print_read_outs(name: str, values: Mapping[str, Any]) -> None:
    from isoviz.readouts import CATALOGUE

    common = values.get("most_common")
    counts = {what: value for what, value in values.items() if what not in CATALOGUE and what != "most_common"}
    print(f"{name}: " + ", ".join(f"{value:,} {what}" for what, value in counts.items()))
    if common is not None:
        _print_line("Share of the most common label", f"{common:.4f}")
    for slug, value in values.items():
        if slug in CATALOGUE:
            _print_line(CATALOGUE[slug].title, _number(value, "undefined"))


def _numbers() -> list[Metric]:
    shown = applicable("rows") + [metric for metric in applicable("tokens") if "rows" not in metric.kinds]
    places = {slug: place for place, slug in enumerate(metrics.catalogue())}
    return sorted((metric for metric in shown if metric.gives != "curve"), key=lambda metric: places[metric.slug])


def _print_cloud(name: str, record: CloudRecord) -> None:
    print(f"{name}: n = {record.n} points, d = {record.d} dimensions")
    for metric in _numbers():
        reading = record.reading(metric.slug)
        if reading is None:
            continue
        ends = record.interval(metric.slug)
        interval = f" (95 % interval {_number(ends[0], '')} to {_number(ends[1], '')})" if ends else ""
        few = cannot_be_estimated(record.points_of(metric.slug))
        nothing = few if few in reading.undefined else "undefined"
        _print_line(metric.number_title, _number(record.number(metric.slug), nothing) + interval)
    if record.dimensions:
        _print_line("rogue dimensions by mean", listed(record.dimensions.outliers, 40) or "none")
        if record.dimensions.dead:
            _print_line("dead dimensions", ", ".join(map(str, record.dimensions.dead)))


def _print_partition(what: str, weights: Mapping[str, Any]) -> None:
    print(f"{what}: N = {weights['n']} vectors, d = {weights['d']} dimensions")
    for name in ("i1", "i2", "i1_unit", "i2_unit", "norm_mean", "norm_min", "norm_max"):
        _print_line(name, f"{weights[name]:.4g}")


def _print_line(label: str, value: str) -> None:
    print(f"  {label:<31} {value}")


def _table_row(record: CloudRecord, shown: Sequence[Metric]) -> list[str]:
    cells = []
    for metric in shown:
        value = record.number(metric.slug)
        cells.append("–" if value is None else f"{value:.1f}" if metric.decimals < 3 else _number(value, "–"))
    return [str(record.layer), record.pooling, str(record.n), *cells]


def _number(value: float | None, nothing: str) -> str:
    if value is None:
        return nothing
    return fixed(value, 4) if value == 0 or abs(value) >= 0.001 else f"{value:.2e}"
