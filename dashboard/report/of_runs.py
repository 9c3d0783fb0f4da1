"""An experiment, or any selection of runs, as a report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pandas as pd

import isoviz
from dashboard.report.document import Block, Code, Document, Heading, Numbers, Paragraph, Picture, Points
from dashboard.results import comparison
from dashboard.results import sections as results
from dashboard.shared import charts, measures, resources, run_lists, tables
from dashboard.shared.run_lists import Filter
from isoviz import tasks
from isoviz.metrics.protocol import Metric
from isoviz.runs import citing, planning
from isoviz.runs.rows import RunRow


def document(
    run_filter: Filter, title: str, isotropy: Sequence[Metric] = (), metrics: Mapping[str, str] | None = None
) -> Document:
    """Per task: the table, all seeds, the comparison and the trade-off; then all runs, provenance and citations.

    Args:
        isotropy: measures in the tables; the first is that of the trade-off. Default: the one that the methods act on.
        metrics: task → metric; by default its primary one.
    """
    frame = run_lists.frame(run_filter)
    rows = rows_of(frame)
    counts = ", ".join(f"{count} {status}" for status, count in frame["status"].value_counts().items())
    about = f"{len(frame)} runs ({counts}), {time.strftime('%Y-%m-%d')}, isoviz {isoviz.__version__}"
    isotropy = isotropy or [measures.default_for(frame["method"])]
    blocks: list[Block] = []
    for (model, task), runs in frame.groupby(["model", "task"], sort=False):
        blocks += _setup(str(model), str(task), runs, isotropy, (metrics or {}).get(str(task)))
    blocks += [Heading("Every run"), _every_run(frame, isotropy)]
    blocks += [Heading("Provenance"), *(Code(*text) for text in origins(rows, isotropy).items())]
    return Document(title, about, tuple(blocks))


def _setup(model: str, task: str, runs: pd.DataFrame, isotropy: Sequence[Metric], metric: str | None) -> list[Block]:
    """Blocks on one model and task."""
    task_entry = tasks.catalogue().get(task)
    metric = metric or tasks.primary_metric(task, (name for values in runs["metrics"] for name in values))
    blocks: list[Block] = [Heading(f"{task_entry.title if task_entry else task}: {model}")]
    blocks += [Paragraph(warning, "warning") for warning in run_lists.warnings(runs)]
    with_metric = tables.with_metric(runs, metric)
    summary = tables.summary(with_metric)
    if summary.empty:
        return [*blocks, Paragraph("No run has finished.")]
    ids = [str(run) for run in runs["run"]]
    published = results.published_table(
        task, metric, runs, summary, list(isotropy), comparison.of_any_size(metric, ids)
    )
    levels = tables.references(published.simple)
    table = results.readable(published)
    decimals = {"Mean": 3, "± s": 3}
    for measure in isotropy:
        decimals |= {measure.heading: measure.decimals, f"± s of {measure.heading}": measure.decimals}
    title = f"{metric}: mean and sample standard deviation over n seeds"
    clouds = tuple(f"{measure.heading}: {measures.cloud(measure)}." for measure in isotropy)
    blocks.append(Numbers(title, table, clouds, decimals))
    _, strip = results.seed_strip(with_metric, metric, levels)
    if strip is not None:
        blocks.append(Picture(f"{metric} of every seed", strip, f"{metric} of every seed on {task}, by method"))
    blocks += _differences(metric, ids)
    return [*blocks, *_tradeoff(runs, task, metric, isotropy[0])]


def _differences(metric: str, runs: list[str]) -> list[Block]:
    """Sentences and tables of `dashboard.results.comparison`, or the reason why the runs cannot be compared."""
    table = comparison.of_any_size(metric, runs)
    if table is None:
        return []
    if isinstance(table, str):
        return [Paragraph(f"Not compared: {table}", "note")]
    blocks: list[Block] = []
    for part in table.parts:
        blocks += [Paragraph(warning, "warning") for warning in part.warnings]
        frame = comparison.as_frame(part).rename(columns=comparison.HEADINGS)
        notes = (*comparison.excluded(part), *part.notes)
        blocks.append(Numbers("Do these methods differ?", frame, notes))
        blocks.append(Points(tuple(pair.sentence for pair in part.comparisons)))
    return blocks


def _tradeoff(runs: pd.DataFrame, task: str, metric: str, measure: Metric) -> list[Block]:
    labels = tables.number_parameters(runs)
    parameter = next(iter(labels), None)
    points = tables.points(runs, metric, measure.slug, parameter)
    if points.empty:
        return []
    figure = charts.tradeoff(points, metric, measure, labels.get(parameter or "", ""))
    alt_text = f"{metric} against {measure.number_title} of {len(points)} runs on {task}"
    sentence = results.association(runs, metric, measure)
    blocks: list[Block] = [Picture(f"{measure.number_title} against {metric}", figure, alt_text)]
    return [*blocks, Paragraph(sentence)] if sentence else blocks


def _every_run(frame: pd.DataFrame, isotropy: Sequence[Metric]) -> Numbers:
    """All runs, without columns whose values are in the headings."""
    names = {"run": "Run", "model": "Model", **results.RUN_COLUMNS}
    names |= {measure.slug: measure.heading for measure in isotropy} | {"seconds": "Seconds", "problem": "Remarks"}
    names = {name: heading for name, heading in names.items() if name not in results.ALIKE or frame[name].nunique() > 1}
    places = {"Value": 3, "Seconds": 1} | {measure.heading: measure.decimals for measure in isotropy}
    return Numbers("All runs", frame[list(names)].rename(columns=names), places=places)


def rows_of(frame: pd.DataFrame) -> list[RunRow]:
    run_ids = set(frame["run"])
    # a selection has either only examples or no examples
    where = resources.library().with_run(next(iter(run_ids), ""))
    return [row for row in where.list(order="oldest") if row.id in run_ids]


def origins(rows: Sequence[RunRow], isotropy: Sequence[Metric]) -> dict[str, str]:
    """Where the numbers of runs come from, by title: their commands, versions and devices, and BibTeX."""
    from isoviz.events import Started

    surroundings: dict[str, None] = {}
    for row in rows:
        for started in resources.library().events_of_kind(row.id, Started, limit=1):
            versions = ", ".join(f"{name} {version}" for name, version in started.versions.items())
            precision = "float32" if started.precision == "no" else started.precision
            threads = f"{started.threads} thread{'s' if started.threads != 1 else ''}"
            surroundings["; ".join(filter(None, (f"{started.device}, {precision}, {threads}", versions)))] = None
    configs = [row.config for row in rows]
    return {
        "Commands to repeat these runs": planning.command(configs),
        "Runs": ", ".join(row.id for row in rows),
        "Computed on": "\n".join(surroundings),
        "BibTeX": "\n\n".join(citing.bibtex(configs, [measure.slug for measure in isotropy]).values()),
    }
