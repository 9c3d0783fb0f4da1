"""`isoviz measure`: every measure of an array file, or of a model on a task, by layer and pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isoviz import metrics
from isoviz.commands.output import Answer, print_table, progress_bar
from isoviz.errors import listed
from isoviz.exploring.encoders import RUN
from isoviz.formatting import fixed
from isoviz.metrics.measuring import applicable, cannot_be_estimated
from isoviz.metrics.protocol import Metric
from isoviz.metrics.record import CloudRecord
from isoviz.operations.measure import Measured, MeasureRequest, measure


def run(request: MeasureRequest) -> Answer:
    """Measure, with a progress bar."""
    with progress_bar() as progress:
        measured = measure(request, progress)
    return Answer(measured.document, lambda: _print(request, measured), measured.notes)


def _print(request: MeasureRequest, measured: Measured) -> None:
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
        _print_across(measured.across)
    _print_cloud(measured.name, measured.headline)
    if measured.columns:
        _print_line("columns", listed(measured.columns))
    for name in ("labels", "pairs", "queries"):
        if name in document:
            _print_read_outs(name, document[name])
    of_run = str(request.model).startswith(RUN)
    titles = {
        "as_weights": "rows read as output vectors",
        "output_embeddings": "output layer of the run's head" if of_run else "output embeddings",
    }
    for name, title in titles.items():
        if weights := document.get(name):
            _print_partition(title, weights)


def _print_across(across: Mapping[str, Any]) -> None:
    if dip := across["valley"]:
        low, high = dip["interval"] or (float("nan"), float("nan"))
        interval = f"95 % interval {low:.3f} to {high:.3f}"
        print(f"prompt entropy: a valley at layer {dip['layer']}, {dip['depth']:.3f} deep ({interval})")
    if kept := across["retention"]:
        rows = f"{kept['rows']:,} rows; {kept['by_chance']:.2f} by chance"
        print(f"10 nearest rows, pooling {across['pooling']}, {rows}:")
        for name, title in (("from_before", "kept from the layer before"), ("to_last", "shared with the last layer")):
            _print_line(title, ", ".join(f"{value:.2f}" for value in kept[name]))
        _print_line("shared most by the others", f"layer {kept['choice']}")
    print()


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
    """The metrics that records of clouds hold as one number each."""
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
    if curve := record.curve("ev"):
        _print_line("EV_1, EV_2, EV_3", ", ".join(f"{value:.4f}" for value in curve[:3]))
    if record.dimensions:
        _print_line("σ min, median, max", ", ".join(_number(value, "") for value in record.dimensions.sigma))
        _print_line("‖mean activation‖", _number(record.dimensions.mean_norm, "undefined"))
        shown = record.dimensions.outliers
        named = ", ".join(map(str, shown[:8])) + (", …" if len(shown) > 8 else "")
        _print_line("rogue dimensions by mean", named or "none")
        if record.dimensions.dead:
            _print_line("dead dimensions", ", ".join(map(str, record.dimensions.dead)))


def _print_partition(what: str, weights: Mapping[str, Any]) -> None:
    print(f"{what}: N = {weights['n']} vectors, d = {weights['d']} dimensions")
    _print_line("I1, I2", f"{weights['i1']:.4g}, {weights['i2']:.4g}")
    _print_line("I1, I2, rms ‖w‖ = 1", f"{weights['i1_unit']:.4g}, {weights['i2_unit']:.4g}")
    norms = (weights[name] for name in ("norm_mean", "norm_min", "norm_max"))
    _print_line("‖w‖ mean, min, max", ", ".join(f"{value:.4g}" for value in norms))
    print(
        "  Public code for I1 often takes the rows of the eigenvector matrix instead of its columns. Its numbers are those"
    )
    print('  of isoviz.metrics.partition(W, convention="published").')


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
