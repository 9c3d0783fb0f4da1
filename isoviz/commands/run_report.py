"""Runs as the command line shows them: a few lines for each."""

from __future__ import annotations

from collections.abc import Mapping

from isoviz import metrics, tasks
from isoviz.commands.output import lines_of
from isoviz.events import Started
from isoviz.formatting import decimals
from isoviz.metrics.protocol import Metric
from isoviz.operations.documents import NO_SCORE, Beginning
from isoviz.runs.rows import RunRow
from isoviz.runs.summaries import TIMING, RunSummary, summary_of

CLOUDS: Mapping[str, str] = {
    "head": "what the output layer reads",
    "layers": "all layers' tokens",
    "output": "rows of the output matrix",
}
"""What the clouds are that a run reports, in words."""
_SYMBOLS = {"zeta": "ζ"}


def describe(run: RunRow | RunSummary, started: Started | None = None) -> str:
    """A run in a few lines.

    Args:
        started: for the baselines and notes of a `RunRow`.
    """
    run = summary_of(run, started) if isinstance(run, RunRow) else run
    numbers = [_scores(run), *_isotropy(run), _times(run.numbers.get(TIMING, {}))] if run.status == "finished" else []
    return lines_of(run, numbers)


def _scores(run: RunSummary) -> str:
    scores = []
    primary = tasks.primary_metric(run.task, run.metrics)
    for name, value in run.metrics.items():
        if name not in NO_SCORE:
            baselines = _baselines(run) if name == primary else {}
            against = ", ".join(f"{title} {decimals(level, 4)}" for title, level in baselines.items())
            scores.append(f"{name} {decimals(value, 4)}" + (f" ({against})" if against else ""))
    rows = f" (n = {run.eval_rows:,})" if run.eval_rows else ""
    return f"validation{rows}: {', '.join(scores)}"


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
        lines.setdefault(run.home(slug), []).append(f"{_with_settings(slug, run.settings(slug))} {value}")
    return [f"{_cloud(run, home)}: {', '.join(of)}" for home, of in lines.items()]


def _headline_metrics() -> dict[str, Metric]:
    return {slug: one for slug, one in metrics.catalogue().items() if one.headline and one.gives != "curve"}


def _with_settings(slug: str, settings: Mapping[str, float]) -> str:
    """A metric's heading, with what it was taken with: `IsoScore* (ζ = 0.2)`."""
    words = ", ".join(f"{_SYMBOLS.get(name, name)} = {value:g}" for name, value in settings.items())
    return metrics.get(slug).heading + (f" ({words})" if words else "")


def _cloud(run: RunSummary, name: str) -> str:
    """A cloud's name, what it is, and its split, n and d."""
    size = run.size(name)
    title = ", ".join(filter(None, (name, CLOUDS.get(name, ""))))
    if name == "output":  # of no rows
        return title
    sizes = ["validation", *([f"n = {size[0]:,}", f"d = {size[1]:,}"] if size else [])]
    return f"{title} ({', '.join(sizes)})"


def _times(timing: Mapping[str, float | None]) -> str:
    names = {"training": "train", "evaluating": "evaluate", "measuring": "measure", "total": "total"}
    parts = {word: timing.get(f"{name}_seconds") for word, name in names.items()}
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items() if seconds is not None)
