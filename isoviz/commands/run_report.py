"""Runs as the command line reports them: a document for programs, a few lines for people, a table over seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isoviz import methods, metrics, tasks
from isoviz.commands.output import print_table
from isoviz.config import RunConfig
from isoviz.events import ENDINGS, Finished, Started
from isoviz.formatting import decimals
from isoviz.metrics.protocol import Metric
from isoviz.metrics.record import Reading
from isoviz.metrics.summary import measurement_json
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from isoviz.runs.summaries import ERROR, TIMING, RunSummary, summary_of
from isoviz.statistics import mean_sd

CLOUDS: Mapping[str, str] = {
    "head": "what the output layer reads",
    "layers": "all layers' tokens",
    "output": "rows of the output matrix",
}
"""What the clouds are that a run reports, in words."""
UNREADABLE = "unreadable"
"""In place of the status of a run that cannot be read."""
_INDENT = "    "
_NO_SCORE = ("loss", "epoch")
_SYMBOLS = {"zeta": "ζ"}


def started_of(store: Store, run_id: str) -> Started | None:
    """What a run said when it began: its baselines and notes. None before that."""
    return next(iter(store.events_of_kind(run_id, Started, limit=1)), None)


Beginning = Started | RunSummary
"""What knows a run's baselines and notes: its own event, or its summary in the store."""


def as_json(row: RunRow, started: Beginning | None = None) -> dict[str, Any]:
    """A run as `train --json`, `runs list` and `runs show` give it.

    Args:
        started: for `baselines` and `notes`.
    """
    result = row.result
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "config": row.config.model_dump(mode="json"),
        "metrics": result.metrics if result else {},
        "collapsed": row.collapsed,
        "random_weights": result.random_weights if result else "",
        "baselines": started.baselines if started else {},
        "isotropy": measurement_json(result.isotropy) if result else {},
        "timing": result.timing if result else {},
        "weights": result.weights.model_dump() if result and result.weights else None,
        "notes": list(started.notes) if started else [],
        "warnings": warnings_of(row, started),
        "error": row.error,
    }


def warnings_of(row: RunRow, started: Beginning | None = None) -> list[str]:
    """Everything that a reader of a run must know, one sentence each; arguments as for `as_json`."""
    notes = [f"collapsed: {row.collapsed}"] if row.collapsed else []
    notes += row.progress.warnings if row.progress else []
    notes += started.notes if started else []
    if row.result is not None:
        if row.result.random_weights:
            notes.append(f"random weights: {row.result.random_weights}")
        for slug in metrics.catalogue():
            reading = row.result.isotropy.reading(slug)
            if reading is not None and reading.undefined and row.result.isotropy.number(slug) is None:
                notes.append(f"{slug} is undefined: {reading.undefined}")
    elif row.error:
        notes.append(f"{row.error.get('message', '')} {row.error.get('advice') or ''}".rstrip())
    return list(dict.fromkeys(notes))


def document(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Runs as one JSON document, with the warnings of all of them."""
    return {"runs": list(runs), "warnings": list(dict.fromkeys(text for run in runs for text in run["warnings"]))}


def listed(rows: Iterable[RunRow], summaries: Iterable[RunSummary]) -> dict[str, Any]:
    """The document of a list of runs, in the order of their summaries. A run that was launched after the rows were read is left out."""
    readable = {row.id: row for row in rows}
    runs = [run for run in summaries if run.id in readable or run.unreadable]
    return document([as_json(readable[run.id], run) if run.id in readable else unreadable_json(run) for run in runs])


def unreadable_json(run: RunSummary) -> dict[str, Any]:
    """What `runs list --json` gives of a run that cannot be read: no configuration and no numbers."""
    error = {"kind": UNREADABLE, "message": run.unreadable, "advice": _delete_advice(run)}
    warnings = [f"run {run.id} is unreadable: {run.unreadable}"]
    return {"id": run.id, "name": run.name, "status": UNREADABLE, "error": error, "warnings": warnings}


def _delete_advice(run: RunSummary) -> str:
    stop = f"isoviz runs stop {run.id}, then " if run.status == "running" else ""
    return f"Update IsoViz if a newer version wrote it, or delete it: {stop}isoviz runs delete {run.id}"


def describe(run: RunRow | RunSummary, started: Started | None = None) -> str:
    """A run in a few lines.

    Args:
        started: for the baselines and notes of a `RunRow`.
    """
    run = summary_of(run, started) if isinstance(run, RunRow) else run
    if run.unreadable:
        return f"\n{_INDENT}".join([f"{run.id}  {UNREADABLE}  {run.name}", run.unreadable, _delete_advice(run)])
    setup = " ".join([run.method, *(f"{name}={value}" for name, value in run.params.items())])
    lines = [f"{run.id}  {run.status:<8}  {run.model}  {run.task}  {setup}  seed {run.seed}"]
    if run.status == "finished":
        lines += [_scores(run), *_isotropy(run), _times(run.numbers.get(TIMING, {}))]
        lines += [f"collapsed: {run.collapsed}"] if run.collapsed else []
        lines += [f"note: {note}" for note in run.notes]
    elif run.status in ENDINGS:
        lines.append(f"{run.message} {run.advice}".strip())
    return f"\n{_INDENT}".join(filter(None, lines))


def _scores(run: RunSummary) -> str:
    scores = []
    primary = _primary(run.task, run.metrics)
    for name, value in run.metrics.items():
        if name not in _NO_SCORE:
            baselines = _baselines(run) if name == primary else {}
            against = ", ".join(f"{title} {decimals(level, 4)}" for title, level in baselines.items())
            scores.append(f"{name} {decimals(value, 4)}" + (f" ({against})" if against else ""))
    rows = f" (n = {run.eval_rows:,})" if run.eval_rows else ""
    return f"validation{rows}: {', '.join(scores)}"


def _primary(task: str, reported: Iterable[str]) -> str:
    known = tasks.catalogue().get(task)
    return known.primary if known else next(iter(reported), "")


def _baselines(started: Beginning | None) -> dict[str, float]:
    """What a simple guess scores, by its name in words."""
    known = started.baselines if started else {}
    return {name.replace("_", " "): value for name, value in known.items() if value is not None}


def _isotropy(run: RunSummary) -> list[str]:
    """One line per cloud: its name, n and d, then the catalogue's headline metrics that the run reports of it."""
    lines: dict[str, list[str]] = {}
    isotropy = run.isotropy
    for slug, metric in _headline_metrics().items():
        if slug not in isotropy:
            continue
        number, why = isotropy[slug], run.undefined.get(slug)
        undefined = f"undefined ({why})" if why else "undefined"
        value = undefined if number is None else decimals(number, metric.decimals)
        if (error := run.numbers.get(ERROR, {}).get(slug)) is not None:
            value += f" (± {error:.1g} from sampling, 95 %)"
        lines.setdefault(run.home(slug), []).append(f"{_with_settings(slug, run.settings(slug))} {value}")
    return [f"{_named_cloud(home, 'validation', run.size(home))}: {', '.join(of)}" for home, of in lines.items()]


def _headline_metrics() -> dict[str, Metric]:
    return {slug: one for slug, one in metrics.catalogue().items() if one.headline and one.gives != "curve"}


def _headlines(results: Sequence[Finished]) -> list[str]:
    """Slugs of the headline metrics that any of these runs reports."""
    return [slug for slug in _headline_metrics() if any(result.isotropy.reading(slug) for result in results)]


def _heading(slug: str, reading: Reading | None) -> str:
    """A metric's heading, with what it was taken with: `IsoScore* (ζ = 0.2)`."""
    return _with_settings(slug, reading.settings if reading else {})


def _with_settings(slug: str, settings: Mapping[str, float]) -> str:
    words = ", ".join(f"{_SYMBOLS.get(name, name)} = {value:g}" for name, value in settings.items())
    return metrics.get(slug).heading + (f" ({words})" if words else "")


def _cloud(result: Finished, name: str) -> str:
    """A cloud's name, what it is, and its split, n and d."""
    cloud = result.isotropy.cloud(name)
    return _named_cloud(name, cloud.split if cloud else "", (cloud.n, cloud.d) if cloud and cloud.n else None)


def _named_cloud(name: str, split: str, size: tuple[int, int] | None) -> str:
    title = ", ".join(filter(None, (name, CLOUDS.get(name, ""))))
    if name == "output":  # of no rows
        return title
    sizes = [split, *([f"n = {size[0]:,}", f"d = {size[1]:,}"] if size else [])]
    return title + (f" ({', '.join(filter(None, sizes))})" if any(sizes) else "")


def _times(timing: Mapping[str, float | None]) -> str:
    names = {"training": "train", "evaluating": "evaluate", "measuring": "measure", "total": "total"}
    parts = {word: timing.get(f"{name}_seconds") for word, name in names.items()}
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items() if seconds is not None)


# ---- several runs --------------------------------------------------------------------------------------------------


def summary_json(rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    """Mean and sample standard deviation over the seeds of each setup, for every score and every number of isotropy."""
    return [_summary(group) for group in _by_setup(rows)]


def _by_setup(rows: Iterable[RunRow]) -> list[list[RunRow]]:
    """Runs that differ in nothing but their seed, together, in the order of their first."""
    groups: dict[str, list[RunRow]] = {}
    for row in rows:
        groups.setdefault(row.config.setup_key(), []).append(row)
    return list(groups.values())


def _summary(group: Sequence[RunRow]) -> dict[str, Any]:
    config = group[0].config
    finished = [row for row in group if row.result is not None]
    # as everywhere: what predicts a constant is in no mean
    results = [row.result for row in finished if row.result is not None and not row.collapsed]
    scores = dict.fromkeys(name for result in results for name in result.metrics if name not in _NO_SCORE)
    numbers = [slug for slug, metric in metrics.catalogue().items() if metric.gives != "curve"]
    return {
        "setup": {"model": config.model, "task": config.task, "method": config.method, "params": dict(config.params)},
        "seeds": [row.config.seed for row in finished],
        "not_finished": len(group) - len(finished),
        "collapsed": dict(Counter(row.collapsed for row in finished if row.collapsed)),
        "metrics": {name: _spread(result.metrics.get(name) for result in results) for name in scores},
        "isotropy": {
            slug: _spread(result.isotropy.number(slug) for result in results)
            for slug in numbers
            if any(result.isotropy.reading(slug) for result in results)
        },
    }


def _spread(values: Iterable[float | None]) -> dict[str, Any]:
    defined = [value for value in values if value is not None]
    mean, sd = mean_sd(defined)
    return {"mean": mean, "sd": sd, "n": len(defined)}


def print_summary(rows: Sequence[RunRow], started: Beginning | None) -> None:
    """A table of the setups: mean ± sample standard deviation over seeds, and below them the simple baselines.

    Args:
        rows: runs with model, task and data in common.
        started: of one of them.
    """
    results = [row.result for row in rows if row.result is not None]
    if not results:
        return
    primary, slugs = _primary(rows[0].config.task, results[0].metrics), _headlines(results)
    where = "; ".join(dict.fromkeys(_cloud(results[0], results[0].isotropy.home(slug)) for slug in slugs))
    print(f"\nMean ± sample standard deviation over seeds. Isotropy of {where}.")
    lines = []
    for title, summary in zip(_titles([group[0].config for group in _by_setup(rows)]), summary_json(rows), strict=True):
        score = _mean_and_sd(summary["metrics"].get(primary), 4)
        isotropy = [_mean_and_sd(summary["isotropy"].get(slug), metrics.get(slug).decimals) for slug in slugs]
        lines.append([title, str(len(summary["seeds"])), score, *isotropy, _remarks(summary)])
    for name, value in _baselines(started).items():
        lines.append([f"({name})", "", decimals(value, 4), *([""] * len(slugs)), ""])
    headings = [_heading(slug, results[0].isotropy.reading(slug)) for slug in slugs]
    print_table(["setup", "seeds", primary, *headings, "remarks"], lines)


def _titles(configs: Sequence[RunConfig]) -> list[str]:
    """Each setup's method, with the parameters that differ among the setups of that method or from their default."""
    titles = []
    for config in configs:
        known = methods.find(config.method)
        defaults = {name: field.default for name, field in known.Params.model_fields.items()} if known else {}
        same_method = [other.params for other in configs if other.method == config.method]
        telling = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in config.params.items()
            if value != defaults.get(name) or any(params.get(name) != value for params in same_method)
        ]
        titles.append(" ".join([config.method, *telling]))
    return titles


def _mean_and_sd(spread: Mapping[str, Any] | None, places: int) -> str:
    """`0.812 ± 0.020`; of one seed the value alone."""
    if spread is None or spread["mean"] is None:
        return "undefined"
    mean = decimals(spread["mean"], places)
    return mean if spread["sd"] is None else f"{mean} ± {decimals(spread['sd'], places)}"


def _remarks(summary: Mapping[str, Any]) -> str:
    runs = len(summary["seeds"])
    remarks = [f"{count} of {runs} collapsed: {reason}" for reason, count in summary["collapsed"].items()]
    return ", ".join([*remarks, *([f"{summary['not_finished']} not finished"] if summary["not_finished"] else [])])
