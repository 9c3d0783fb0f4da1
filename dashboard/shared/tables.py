"""Store rows → pandas frames. No Streamlit here: every function gives the same frame for the same rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard.shared import measures, wording
from isoviz import methods, tasks
from isoviz.formatting import decimals
from isoviz.parameters import off_scale
from isoviz.runs.comparisons import SettingMean
from isoviz.runs.comparisons.setups import sortable
from isoviz.runs.naming import method_title, parameter_label, parameter_symbols, setting, variant
from isoviz.runs.rows import RunRow
from isoviz.runs.summaries import TIMING, RunSummary, summary_of

NOT_METRICS = frozenset({"loss", "epoch"})
"""Entries of a run's `metrics` that are not task metrics."""

_NO_SETTING = frozenset({"version", "model", "task", "data", "method", "params", "seed", "threads", "report_to"})
_SAME_IN_A_METHOD = frozenset({"version", "method", "params"})

_IDENTITY = (
    "run",
    "name",
    "group",
    "status",
    "model",
    "task",
    "data",
    "method",
    "title",
    "params",
    "variant",
    "setup",
    "seed",
)


def run_columns() -> list[str]:
    """Columns of `runs_frame`: the run's identity, task metrics, isotropy measures by slug (see `measures`), and the rest."""
    isotropy = [metric.slug for metric in measures.of_runs()]
    measured = ["primary", "metric", "value", "metrics", "baselines", *isotropy, "n", "d"]
    return [*_IDENTITY, *measured, "seconds", "problem", "collapsed"]


def runs_frame(runs: Iterable[RunRow | RunSummary]) -> pd.DataFrame:
    """One row per run, with `run_columns`. Values only for finished runs: the last report of others is not a result.

    `primary` is the metric by which runs of the task are compared, `baselines` the scores of simple approaches, and `value`
    the value of `metric`, initially the primary one. `params` is the parameter dictionary, `variant` its short text, `setup` identifies
    everything but seed and thread count: runs with the same `setup` may be averaged. `n` and `d` are those of the `head` cloud.
    `problem` is empty for a finished run without caveats; `collapsed` says why its scores do not count.
    """
    slugs = [metric.slug for metric in measures.of_runs()]
    variants: dict[str, str] = {}
    lines = []
    for run in runs:
        summary = summary_of(run) if isinstance(run, RunRow) else run
        if summary.setup not in variants:
            variants[summary.setup] = variant(summary.method, summary.params)
        lines.append(_run(summary, slugs, variants[summary.setup]))
    frame = pd.DataFrame(lines, columns=run_columns())
    # without a number, a column would hold objects, which are slow to average
    return frame.astype(dict.fromkeys(["value", *slugs, "n", "d", "seconds"], float))


def _run(run: RunSummary, slugs: Sequence[str], variant_text: str) -> tuple[Any, ...]:
    """One row, in the order of `run_columns`."""
    values = {name: value for name, value in run.metrics.items() if name not in NOT_METRICS}
    isotropy = run.isotropy
    primary = tasks.primary_metric(run.task, values)
    n, d = run.size("head") or (None, None)
    return (
        run.id,
        run.name,
        run.group or "",
        run.status,
        run.model,
        run.task,
        run.data or "",
        run.method,
        method_title(run.method),
        dict(run.params),
        variant_text,
        run.setup,
        run.seed,
        primary,
        primary,
        _number(values.get(primary)),
        values,
        dict(run.baselines),
        *(_number(isotropy.get(slug)) for slug in slugs),
        _number(n),
        _number(d),
        _number(run.numbers.get(TIMING, {}).get("train_seconds")),
        _problem(run),
        run.left_out,
    )


def _problem(run: RunSummary) -> str:
    """A caveat on the run's numbers; empty if there is none."""
    if run.status in ("queued", "running"):
        return run.status
    if run.status != "finished":
        return f"{run.status}: {run.message}" if run.message else run.status
    reasons = [run.left_out] if run.left_out else []
    if run.random_weights:
        reasons.append(f"random weights: {run.random_weights}")
    first = measures.of_runs()[0]
    if run.isotropy.get(first.slug) is None:
        reasons.append(f"{first.title} undefined: {run.undefined.get(first.slug) or 'the cloud has no spread'}")
    return "; ".join(reasons)


def settings_text(frame: pd.DataFrame) -> dict[str, str]:
    """Setup → the common settings in which the frame's runs differ, as text (`epochs 3, max_train 1000`)."""
    setups = {setup: json.loads(setup) for setup in frame["setup"].unique()}
    names = sorted({name for setup in setups.values() for name in setup} - _NO_SETTING)
    differing = [name for name in names if len({json.dumps(setup.get(name)) for setup in setups.values()}) > 1]
    return {key: ", ".join(f"{name} {setting(setup.get(name))}" for name in differing) for key, setup in setups.items()}


def labels(frame: pd.DataFrame) -> list[str]:
    """Method with parameters, as `isoviz.runs.comparisons` names it."""
    return [" ".join(filter(None, names)) for names in zip(frame["title"], frame["variant"], strict=True)]


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per setup: mean and sample standard deviation over seeds, all seeds, and counts of excluded runs.

    A seed that ran more than once counts once, with its newest finished run, because repeats are not independent.
    Unfinished and collapsed runs are excluded from means and counted in `remarks`. `n` is the number of included runs.
    """
    isotropy = [metric.slug for metric in measures.of_runs()]
    columns = ["model", "task", "method", "title", "variant", "settings", "metric", "mean", "sd", "n", "seeds"]
    columns += [f"{name}{part}" for name in isotropy for part in ("", "_sd")] + ["seconds", "remarks", "setup"]
    if frame.empty:
        return pd.DataFrame(columns=columns)
    newest = newest_per_seed(frame).sort_values("seed", kind="stable")
    counted = newest[newest["collapsed"] == ""]
    # the isotropy of a run that learned nothing counts: a collapse is seen by it
    numbers = newest.assign(value=counted["value"]).groupby("setup", sort=False)[["value", *isotropy, "seconds"]]
    spreads = pd.concat([numbers.mean(), numbers.std().add_suffix("_sd")], axis=1).rename(
        columns={"value": "mean", "value_sd": "sd"}
    )
    seeds = [
        f"{seed}: {decimals(value)}{f' ({word})' if (word := left_out.partition(':')[0]) else ''}"
        for seed, value, left_out in zip(newest["seed"], newest["value"], newest["collapsed"], strict=True)
    ]
    by_setup = pd.Series(seeds, index=newest.index, dtype=object).groupby(newest["setup"], sort=False)
    lines = _firsts(frame)[["model", "task", "method", "title", "variant", "metric", "setup"]]
    lines = lines.join(spreads, on="setup").assign(
        settings=lines["setup"].map(settings_text(frame)),
        n=lines["setup"].map(counted.groupby("setup").size()).fillna(0).astype(int),
        seeds=lines["setup"].map(by_setup.agg(" · ".join)).fillna(""),
        remarks=lines["setup"].map(_remarks(frame, newest)),
    )
    return lines[columns].reset_index(drop=True)


def with_metric(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The runs with another metric in `value`."""
    values = pd.Series([_number(metrics.get(metric)) for metrics in frame["metrics"]], index=frame.index, dtype=float)
    return frame.assign(metric=metric, value=values)


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs by model, task, method in the catalogue's order, parameters by value, seed."""
    place = {setup: number for number, setup in enumerate(_firsts(frame)["setup"])}
    return (
        frame.assign(_place=frame["setup"].map(place))
        .sort_values(["_place", "seed"], kind="stable")
        .drop(columns="_place")
    )


def _firsts(frame: pd.DataFrame) -> pd.DataFrame:
    """The first run of each setup, by model, task, method in the catalogue's order, parameters by value."""
    firsts = frame.drop_duplicates("setup")
    keys = [
        (model, task, methods.place(method), [sortable(value) for value in params.values()])
        for model, task, method, params in zip(
            firsts["model"], firsts["task"], firsts["method"], firsts["params"], strict=True
        )
    ]
    return firsts.iloc[sorted(range(len(firsts)), key=keys.__getitem__)]


def _remarks(frame: pd.DataFrame, newest: pd.DataFrame) -> dict[str, str]:
    """Setup → remarks on its runs that are not counted."""
    remarks: dict[str, list[str]] = {str(setup): [] for setup in frame["setup"].unique()}
    finished = frame["status"] == "finished"
    for (setup, status), runs in _counts(frame[~finished], "status").items():
        remarks[setup].append(f"{runs} {status}")
    used = Counter(newest["setup"].tolist())
    for (setup, reason), runs in _counts(newest[newest["problem"] != ""], "problem").items():
        remarks[setup].append(f"{runs} of {used[setup]} {reason}")
    for setup, runs in Counter(frame.loc[finished, "setup"].tolist()).items():
        if repeated := runs - used[setup]:
            remarks[setup].append(f"{repeated} repeated seed{'s' if repeated > 1 else ''} not counted")
    return {setup: ", ".join(notes) for setup, notes in remarks.items()}


def _counts(frame: pd.DataFrame, column: str) -> Counter[tuple[str, str]]:
    return Counter(zip(frame["setup"].tolist(), frame[column].tolist(), strict=True))


def number_parameters(frame: pd.DataFrame) -> dict[str, str]:
    """Numeric parameters of the frame's runs: name → label with symbol; most values first."""
    values_of: dict[str, set[float]] = {}
    labels: dict[str, str] = {}
    for method, params in zip(frame["method"], frame["params"], strict=True):
        method_class = methods.find(method)
        fields = method_class.Params.model_fields if method_class else {}
        for name, value in params.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                values_of.setdefault(name, set()).add(float(value))
                labels.setdefault(name, parameter_label(name, fields.get(name)))
    return {
        name: labels[name] for name in sorted(values_of, key=lambda name: (-len(values_of[name]), name != "lam", name))
    }


def points(frame: pd.DataFrame, metric: str, measure: str, parameter: str | None) -> pd.DataFrame:
    """Trade-off points: finished runs with `value` (task metric), `isotropy` (measure) and `at` (parameter value).

    A seed that ran more than once in a setup gives one point, for its newest finished run. Runs with the same `line` differ only in
    the parameter and the seed, so their means may be joined; `settings` describes how a line
    differs from others of its method. A run without the parameter, or with a value off its scale
    (`isoviz.parameters.off_scale`), has NaN in `at`; runs with an undefined coordinate are left out.
    """
    finished = newest_per_seed(frame).copy()
    finished["value"] = [_number(metrics.get(metric)) for metrics in finished["metrics"]]
    finished["isotropy"] = finished[measure]
    of_runs = zip(finished["method"], finished["params"], strict=True)
    finished["at"] = [_on_scale(method, params, parameter) if parameter else None for method, params in of_runs]
    for column in ("value", "isotropy", "at"):
        finished[column] = pd.to_numeric(finished[column])
    lines = {setup: _without_parameter(setup, parameter) for setup in finished["setup"].unique()}
    # a value off the scale is part of its line's name
    off = finished["at"].isna()
    finished["line"] = finished["setup"].where(off, finished["setup"].map(lines)).astype(object)
    finished = finished.dropna(subset=["value", "isotropy"])
    names = {
        line: text
        for _, method_rows in finished.groupby("method")
        for line, text in _differences(method_rows["line"].unique()).items()
    }
    finished["settings"] = finished["line"].map(names).astype(object)
    columns = ["run", "group", "model", "task", "method", "title", "variant", "settings", "seed"]
    columns += ["value", "isotropy", "at", "problem", "collapsed", "line", "setup"]
    return finished[columns].reset_index(drop=True)


def _on_scale(method: str, params: Mapping[str, Any], name: str) -> float | None:
    value = _number(params.get(name))
    method_class = methods.find(method)
    return None if method_class and value in off_scale(method_class.Params, name) else value


def setting_means(points: pd.DataFrame) -> pd.DataFrame:
    """One row per setup of `points`, in order: mean and standard deviation of both coordinates over seeds, and number of seeds.

    Excludes runs that learned nothing.
    """
    counted = points[points["collapsed"] == ""]
    groups = counted.groupby("setup", sort=False)
    key_columns = ["method", "title", "variant", "settings", "at", "line"]
    numbers = groups[["value", "isotropy"]].agg(["mean", "std"])
    numbers.columns = ["value", "value_sd", "isotropy", "isotropy_sd"]
    return pd.concat([groups[key_columns].first(), numbers, groups.size().rename("n")], axis=1).reset_index()


def association_points(frame: pd.DataFrame, measure: str, metric: str | None) -> list[SettingMean]:
    """The settings of finished runs as points of a rank correlation (`isoviz.runs.comparisons.associate`).

    Args:
        metric: task metric; None for each task's primary metric.
    """
    counted = newest_per_seed(frame)
    counted = counted[counted["collapsed"] == ""]
    names = [metric] * len(counted) if metric else counted["primary"].tolist()
    scores = [_number(metrics.get(name)) for metrics, name in zip(counted["metrics"], names, strict=True)]
    numbers = counted.assign(score=pd.to_numeric(pd.Series(scores, index=counted.index, dtype=object)))
    means = numbers.dropna(subset=["score", measure]).groupby("setup", sort=False)[[measure, "score"]].mean()
    return [
        SettingMean(json.dumps(settings | dict.fromkeys(("method", "params"))), float(isotropy), float(score))
        for settings, isotropy, score in zip(map(json.loads, means.index), means[measure], means["score"], strict=True)
    ]


def newest_per_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """The newest finished run per setup and seed, in the frame's order; repeats are not independent."""
    finished = frame[frame["status"] == "finished"]
    return finished.loc[finished.sort_values("run").drop_duplicates(["setup", "seed"], keep="last").index.sort_values()]


def _without_parameter(setup: str, name: str | None) -> str:
    """The key of a setup without one parameter of its method."""
    settings = json.loads(setup)
    settings["params"].pop(name, None)
    return json.dumps(settings, sort_keys=True)


def _differences(setups: Iterable[str]) -> dict[str, str]:
    """Setup keys of one method → the settings and parameters in which they differ, as text (`ζ = 0.8, epochs 6`)."""
    described: dict[str, dict[str, str]] = {}
    for setup in setups:
        settings = json.loads(setup)
        symbols = parameter_symbols(settings["method"])
        described[setup] = {
            name: f"{symbols.get(name, name)} = {setting(value)}" for name, value in settings["params"].items()
        } | {name: f"{name} {setting(value)}" for name, value in settings.items() if name not in _SAME_IN_A_METHOD}
    names = list(dict.fromkeys(name for texts in described.values() for name in texts))
    differing = [name for name in names if len({texts.get(name) for texts in described.values()}) > 1]
    return {setup: ", ".join(texts[name] for name in differing if name in texts) for setup, texts in described.items()}


def references(started: Mapping[str, Any]) -> list[tuple[str, float]]:
    """A run's baselines (majority, bag of words, random weights, …) as (words, value), undefined ones left out."""
    return [(name.replace("_", " "), float(value)) for name, value in started.items() if value is not None]


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def as_markdown(table: pd.DataFrame) -> str:
    """A table as Markdown: a sortable one would take a new tab longer to load than all figures."""
    lines = [
        [wording.plain(cell) if isinstance(cell, str) else wording.number(cell) for cell in line]
        for line in table.itertuples(index=False)
    ]
    head = [list(table.columns), ["---", *["---:"] * (len(table.columns) - 1)]]
    return "\n".join("| " + " | ".join(line) + " |" for line in [*head, *lines])
