"""Store rows → pandas frames. No Streamlit here: every function gives the same frame for the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard import measures
from isoviz import methods, tasks
from isoviz.events import Finished
from isoviz.metrics.record import Measurement
from isoviz.runs.naming import method_title, parameter_label, parameter_symbols, setting, variant
from isoviz.runs.rows import RunRow
from isoviz.statistics import mean_sd

NOT_METRICS = frozenset({"loss", "epoch"})
"""Entries of a run's `metrics` that are no task metric."""

_NO_SETTING = frozenset({"version", "model", "task", "data", "method", "params", "seed", "threads"})
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
    """Of `runs_frame`: who a run is, its task metrics, every number of isotropy by its slug (see `measures`), and the rest."""
    isotropy = [metric.slug for metric in measures.of_runs()]
    return [*_IDENTITY, "metric", "value", "metrics", *isotropy, "n", "d", "seconds", "problem", "collapsed"]


def runs_frame(rows: Iterable[RunRow]) -> pd.DataFrame:
    """One line per run, `run_columns`. Values are those of finished runs: what others last reported is no result.

    `params` is the parameter dictionary, `variant` its short text, `setup` identifies everything but seed and thread
    count: runs with the same `setup` may be averaged. `n` and `d` are those of the `head` cloud. `problem` is empty for a
    finished run that nothing speaks against; `collapsed` says why its predictions count as constant.
    """
    slugs = [metric.slug for metric in measures.of_runs()]
    return pd.DataFrame([_run(row, slugs) for row in rows], columns=run_columns())


def _run(row: RunRow, slugs: Sequence[str]) -> dict[str, Any]:
    config = row.config
    result = row.result or Finished(metrics={}, isotropy=Measurement(), timing={})
    values = {name: value for name, value in result.metrics.items() if name not in NOT_METRICS}
    head = result.isotropy.cloud("head")
    isotropy: dict[str, Any] = {}
    for part in (result.isotropy.output, result.isotropy.cloud("layers"), head):  # as `Measurement.home` prefers them
        isotropy |= {slug: reading.value for slug, reading in part.readings.items()} if part else {}
    primary = primary_metric(config.task, values)
    return {
        "run": row.id,
        "name": row.name,
        "group": row.group or "",
        "status": row.status,
        "model": config.model,
        "task": config.task,
        "data": config.data or "",
        "method": config.method,
        "title": method_title(config.method),
        "params": dict(config.params),
        "variant": variant(config.method, config.params),
        "setup": config.setup_key(),
        "seed": config.seed,
        "metric": primary,
        "value": _number(values.get(primary)),
        "metrics": values,
        **{slug: _number(isotropy.get(slug)) for slug in slugs},
        "n": _number(head.n if head else None),
        "d": _number(head.d if head else None),
        "seconds": _number(result.timing.get("train_seconds")),
        "problem": problem(row),
        "collapsed": row.collapsed or "",
    }


def problem(row: RunRow) -> str:
    """What a reader must know before trusting the run, in words; empty if nothing."""
    if row.status in ("queued", "running"):
        return row.status
    if row.status != "finished":
        message = (row.error or {}).get("message")
        return f"{row.status}: {message}" if message else row.status
    reasons = [f"collapsed: {row.collapsed}"] if row.collapsed else []
    if row.result is not None and row.result.random_weights:
        reasons.append(f"random weights: {row.result.random_weights}")
    first = measures.of_runs()[0]
    reading = row.result.isotropy.reading(first.slug) if row.result else None
    if reading is None or reading.value is None:
        why = reading.undefined if reading else ""
        reasons.append(f"{first.title} undefined: {why or 'the cloud has no spread'}")
    return "; ".join(reasons)


def primary_metric(task: str, metrics: Mapping[str, Any]) -> str:
    """The metric by which runs of a task are compared; the first one reported if the task is not in the catalogue."""
    known = tasks.catalogue().get(task)
    return known.primary if known else next(iter(metrics), "")


def settings_text(frame: pd.DataFrame) -> dict[str, str]:
    """Setup → the common settings in which the frame's runs differ, as text (`epochs 3, max_train 1000`)."""
    setups = {setup: json.loads(setup) for setup in frame["setup"].unique()}
    names = sorted({name for setup in setups.values() for name in setup} - _NO_SETTING)
    differing = [name for name in names if len({json.dumps(setup.get(name)) for setup in setups.values()}) > 1]
    return {key: ", ".join(f"{name} {setting(setup.get(name))}" for name in differing) for key, setup in setups.items()}


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per setup: mean and sample standard deviation over seeds, every seed visible, nothing dropped silently.

    A seed that ran more than once counts once, with its newest finished run: its repeats are no independent draws.
    Runs that did not finish are counted in `remarks`; collapsed ones are in the mean and named there.
    """
    isotropy = [metric.slug for metric in measures.of_runs()]
    columns = ["model", "task", "method", "title", "variant", "settings", "metric", "mean", "sd", "n", "seeds"]
    columns += [f"{name}{part}" for name in isotropy for part in ("", "_sd")] + ["seconds", "remarks", "setup"]
    if frame.empty:
        return pd.DataFrame(columns=columns)
    settings = settings_text(frame)
    return pd.DataFrame(
        [_line(group, settings[str(setup)], isotropy) for setup, group in _setups(frame)], columns=columns
    )


def with_metric(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The same runs with `value` of another of their metrics."""
    values = pd.Series([_number(metrics.get(metric)) for metrics in frame["metrics"]], index=frame.index, dtype=float)
    return frame.assign(metric=metric, value=values)


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs by model, task, method in the catalogue's order, parameters by value, seed."""
    groups = [group.sort_values("seed") for _, group in _setups(frame)]
    return pd.concat(groups) if groups else frame


def _setups(frame: pd.DataFrame) -> Iterable[tuple[Any, pd.DataFrame]]:
    place = frame["method"].map(methods.place)
    ordered = frame.assign(_place=place).sort_values(["model", "task", "_place"], kind="stable")
    groups = list(ordered.groupby("setup", sort=False))
    groups.sort(
        key=lambda pair: (*pair[1].iloc[0][["model", "task", "_place"]], _sort_params(pair[1].iloc[0]["params"]))
    )
    return groups


def _sort_params(params: Mapping[str, Any]) -> tuple[tuple[int, float, str], ...]:
    return tuple(
        (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value)) for value in params.values()
    )


def _line(group: pd.DataFrame, settings: str, isotropy: Sequence[str]) -> dict[str, Any]:
    first = group.iloc[0]
    counted = seeds_of(group)
    mean, sd = mean_sd(counted["value"])
    line: dict[str, Any] = {
        name: first[name] for name in ("model", "task", "method", "title", "variant", "metric", "setup")
    }
    line |= {"settings": settings, "mean": mean, "sd": sd, "n": len(counted)}
    line["seeds"] = " · ".join(f"{row.seed}: {decimals(row.value)}" for row in counted.itertuples())
    for name in isotropy:
        line[name], line[f"{name}_sd"] = mean_sd(counted[name])
    line["seconds"] = mean_sd(counted["seconds"])[0]
    line["remarks"] = _remarks(group, counted)
    return line


def seeds_of(group: pd.DataFrame) -> pd.DataFrame:
    """The finished runs of one setup, one per seed (the newest), by seed."""
    return newest_per_seed(group).sort_values("seed")


def _remarks(group: pd.DataFrame, counted: pd.DataFrame) -> str:
    remarks = []
    for status, count in group.loc[group["status"] != "finished", "status"].value_counts(sort=False).items():
        remarks.append(f"{count} {status}")
    for reason, count in counted.loc[counted["problem"] != "", "problem"].value_counts(sort=False).items():
        remarks.append(f"{count} of {len(counted)} {reason}")
    repeated = int((group["status"] == "finished").sum()) - len(counted)
    if repeated:
        remarks.append(f"{repeated} repeated seed{'s' if repeated > 1 else ''} not counted")
    return ", ".join(remarks)


def number_parameters(frame: pd.DataFrame) -> dict[str, str]:
    """Numeric parameters that the frame's runs have: name → label with symbol, those with most values first."""
    seen: dict[str, set[float]] = {}
    labels: dict[str, str] = {}
    for method, params in zip(frame["method"], frame["params"], strict=True):
        known = methods.find(method)
        fields = known.Params.model_fields if known else {}
        for name, value in params.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                seen.setdefault(name, set()).add(float(value))
                labels.setdefault(name, parameter_label(name, fields.get(name)))
    return {name: labels[name] for name in sorted(seen, key=lambda name: (-len(seen[name]), name != "lam", name))}


def points(frame: pd.DataFrame, metric: str, measure: str, parameter: str | None) -> pd.DataFrame:
    """Trade-off points: finished runs with `value` of the task metric, `isotropy` of the measure, and `at`, the parameter's value.

    A seed that ran more than once in one setup gives one point, of its newest finished run. `line` is equal for runs that
    differ in nothing but the parameter and the seed, so their means may be joined; `settings` says in words how a line
    differs from the others of its method. A run whose method has no such parameter has NaN in `at`; runs with an undefined
    coordinate are left out.
    """
    finished = newest_per_seed(frame).copy()
    finished["value"] = [_number(metrics.get(metric)) for metrics in finished["metrics"]]
    finished["isotropy"] = finished[measure]
    finished["at"] = [_number(params.get(parameter)) if parameter else None for params in finished["params"]]
    for column in ("value", "isotropy", "at"):
        finished[column] = pd.to_numeric(finished[column])
    lines = {setup: _without_parameter(setup, parameter) for setup in finished["setup"].unique()}
    finished["line"] = finished["setup"].map(lines).astype(object)
    finished = finished.dropna(subset=["value", "isotropy"])
    names = {
        line: text
        for _, part in finished.groupby("method")
        for line, text in _differences(part["line"].unique()).items()
    }
    finished["settings"] = finished["line"].map(names).astype(object)
    kept = ["run", "group", "model", "task", "method", "title", "variant", "settings", "seed"]
    kept += ["value", "isotropy", "at", "problem", "collapsed", "line"]
    return finished[kept].reset_index(drop=True)


def newest_per_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """The finished runs, one per setup and seed: the newest, as its repeats are no independent draws. In the frame's order."""
    finished = frame[frame["status"] == "finished"]
    return finished.loc[finished.sort_values("run").drop_duplicates(["setup", "seed"], keep="last").index.sort_values()]


def _without_parameter(setup: str, parameter: str | None) -> str:
    """The key of a setup without one parameter of its method."""
    settings = json.loads(setup)
    settings["params"].pop(parameter, None)
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
    names = list(dict.fromkeys(name for words in described.values() for name in words))
    differing = [name for name in names if len({words.get(name) for words in described.values()}) > 1]
    return {setup: ", ".join(words[name] for name in differing if name in words) for setup, words in described.items()}


def references(started: Mapping[str, Any]) -> list[tuple[str, float]]:
    """A run's baselines (majority, bag of words, random weights, …) as (words, value), undefined ones left out."""
    return [(name.replace("_", " "), float(value)) for name, value in started.items() if value is not None]


def decimals(value: Any, places: int = 3) -> str:
    """A measured value as text with a true minus sign (none before a zero); `undefined` for None and NaN."""
    if value is None or pd.isna(value):
        return "undefined"
    return f"{value:z.{places}f}".replace("-", "−")


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)
