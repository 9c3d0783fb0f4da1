"""The section "Do these methods differ?" of a task's results: each setting against the baseline, in sentences and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shared import downloads, explanations, exported, resources, run_lists, tables, wording
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedSentences, ExportedTable
from dashboard.shared.run_lists import cached
from isoviz import tasks
from isoviz.errors import InputError, StoreError
from isoviz.events import Started
from isoviz.formatting import decimals, sentence
from isoviz.runs import comparisons
from isoviz.runs.comparisons import Arm, Comparison, Part, Table, setups
from isoviz.runs.comparisons.wording import answer, interval, number, probability
from isoviz.runs.rows import RunRow
from isoviz.studies import published
from isoviz.tasks.metrics import METRICS

TITLE = "Do these methods differ?"
MOST_RUNS = 500
"""Most runs of a task that are compared."""

MOST_SENTENCES = 6
"""Most comparisons shown as sentences; more are in an expander below an overview."""

DIFFERENCES = Explanation(
    title=TITLE,
    reading=(
        "Each setting minus the baseline, over the seeds they share. The interval shows which differences are still possible; p is "
        "corrected for all comparisons in the table."
    ),
    formula=r"t = \frac{\bar d}{s_d / \sqrt n}, \quad d_i = y_i^{\text{setting}} - y_i^{\text{baseline}}",
    paper="Holm 1979 (correction). Hedges 1981 (g).",
)

HEADINGS: dict[str, str] = {
    "setting": "Setting",
    "difference": "Difference [95 % interval]",
    "answer": "Differs?",
    "n": "n",
    "mean": "Mean",
    "interval": "95 % interval",
    "p": "p",
    "p_holm": "p, corrected",
    "g": "Hedges' g",
}


def section(task: str, metric: str, runs: Sequence[str]) -> None:
    """The section of one task; empty with fewer than two finished settings.

    Args:
        runs: run ids of any settings. If they differ in more than the method, the section says how.
    """
    table = compared(metric, runs)
    if table is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.markdown(f"**{TITLE}**")
        st.space("stretch")
        explanations.show(DIFFERENCES)
    if isinstance(table, str):
        few = len(runs) <= MOST_RUNS
        groups = cached(("comparable", tuple(runs)), lambda: setups.comparable(*_read(runs))) if few else {}
        advice = " Choose which of them to compare." if groups else ""
        st.info(wording.plain(sentence(table) + advice), icon=":material/compare_arrows:")
        exported.note(f"compared_{task}", ExportedSentences(TITLE, (sentence(table),)))
        if not groups:
            return
        chosen = st.selectbox("Compare the runs with", list(groups), key=f"comparable_{task}")
        table = compared(metric, groups[chosen])
        if not isinstance(table, Table):
            return
    for index, part in enumerate(table.parts):
        _part(task, part, table, index if len(table.parts) > 1 else None)


def compared(metric: str, runs: Sequence[str]) -> Table | str | None:
    """The comparison, or the reason why there is none; None if all runs have the same method and parameters."""
    return cached(("comparison", tuple(runs), metric), lambda: _compared(runs, metric))


def _compared(runs: Sequence[str], metric: str) -> Table | str | None:
    if len(runs) > MOST_RUNS:
        return f"at most {MOST_RUNS} runs are compared at once: choose an experiment, or fewer methods"
    rows, started = _read(runs)
    if len({(row.config.method, *sorted(row.config.params.items())) for row in rows}) < 2:
        return None
    try:
        return comparisons.compare(rows, metric=metric, started=started)
    except InputError as error:
        return str(error)


def _read(runs: Sequence[str]) -> tuple[list[RunRow], dict[str, Started | None]]:
    """The runs that still exist, and the `Started` event of each."""
    store = resources.library()
    rows: list[RunRow] = []
    started: dict[str, Started | None] = {}
    for run in runs:
        try:
            row = store.get(run)
            starts = store.events_of_kind(run, Started, limit=1)
        except StoreError:  # just deleted
            continue
        rows.append(row)
        started[run] = next(iter(starts), None)
    return rows, started


def sentences(task: str, runs: pd.DataFrame) -> list[str]:
    """What the runs of one task show in its primary metric: a sentence per comparison, or an overview of many; empty without any."""
    metric = tasks.primary_metric(task, (name for values in runs["metrics"] for name in values))
    table = compared(metric, [str(run) for run in runs["run"]])
    if not isinstance(table, Table):
        return [sentence(table)] if table else []
    lines = []
    for part in table.parts:
        title = METRICS[part.metric].title if part.metric in METRICS else part.metric.replace("_", " ")
        if len(part.comparisons) > MOST_SENTENCES:
            lines.append(f"{part.task}, {title}: {overview(part)}")
        else:
            lines += [f"{title}: {comparison.sentence}" for comparison in part.comparisons]
    return lines


def _part(task: str, part: Part, table: Table, place: int | None) -> None:
    """`place` is the part's index if there are several parts."""
    if place is not None:
        setting = (part.settings.get(name) for name in ("model", "direction", "data"))
        st.caption(wording.plain(", ".join(str(value) for value in setting if value)))
    sentences = "\n".join(f"- {wording.plain(comparison.sentence)}" for comparison in part.comparisons)
    if len(part.comparisons) > MOST_SENTENCES:
        st.markdown(wording.plain(overview(part)))
        with st.expander(f"All {len(part.comparisons)} comparisons in sentences", icon=":material/notes:"):
            st.markdown(sentences)
    else:
        st.markdown(sentences)
    frame = as_frame(part)
    alt_text = f"Each setting's {part.metric} on {part.task} against the baseline's, with intervals and tests"
    st.dataframe(frame.rename(columns=HEADINGS), hide_index=True, placeholder="", alt=alt_text)
    notes = excluded(part)
    if table.tests > 1:
        notes.insert(0, f"Corrected by Holm's method for {table.tests} comparisons; intervals are for one.")
    if notes or part.notes:
        st.caption(wording.plain(" · ".join([*notes, *part.notes])))
    every = (*(comparison.sentence for comparison in part.comparisons), *part.warnings, *notes, *part.notes)
    exported.note(f"compared_{task}_{place}", ExportedTable(TITLE, frame.rename(columns=HEADINGS), every))
    name = downloads.file_name("compared", task, part.metric, "" if place is None else f"{part.model} {place + 1}")
    caption = f"{part.model} on {part.task}: {part.metric}, differences from {_baseline(part)}. {' '.join(notes)}"
    headed = frame.rename(columns=HEADINGS)
    downloads.buttons(name, as_numbers(part), latex=lambda: downloads.latex(headed, caption, part.warnings))


def overview(part: Part) -> str:
    """`3 of 13 settings are shown to differ from Baseline: IsoBN β = 0.5 (+0.012), …; 2 have too few seeds to tell.`"""
    differing = [comparison for comparison in part.comparisons if comparison.verdict == "apart"]
    unknown = sum(comparison.verdict == "too few seeds" for comparison in part.comparisons)
    names = ", ".join(
        f"{comparison.arm} ({number(comparison.difference, scale=part.scale, sign=True)})"
        for comparison in differing[:MOST_SENTENCES]
    )
    verb = "is" if len(differing) < 2 else "are"
    count = f"{len(differing) or 'None'} of {len(part.comparisons)}"
    text = f"{count} settings {verb} shown to differ from {_baseline(part)}"
    text += f": {names}{', …' if len(differing) > MOST_SENTENCES else ''}" if differing else ""
    return text + (f"; {unknown} {'has' if unknown == 1 else 'have'} too few seeds to tell." if unknown else ".")


def as_frame(part: Part) -> pd.DataFrame:
    """One row per setting with the columns of `HEADINGS`, as displayed."""
    against = {comparison.arm: comparison for comparison in part.comparisons}
    return pd.DataFrame([_line(arm, against.get(arm.label), part.scale) for arm in part.arms], columns=list(HEADINGS))


def as_numbers(part: Part) -> pd.DataFrame:
    """One row per setting for files: numbers in full precision, all seeds, and the sentence."""
    against = {comparison.arm: comparison for comparison in part.comparisons}
    lines = []
    for arm in part.arms:
        line: dict[str, Any] = {"setting": arm.label} | arm.model_dump(include={"mean", "sd", "median", "low", "high"})
        line |= {"n": arm.n, "seeds": " · ".join(f"{seed}: {value!r}" for seed, value in arm.values.items())}
        if comparison := against.get(arm.label):
            line |= comparison.model_dump(exclude={"arm", "baseline", "low", "high", "n"})
            line |= {"unpaired": " ".join(map(str, comparison.unpaired))}
            line |= {"difference_low": comparison.low, "difference_high": comparison.high}
        lines.append(line)
    frame = pd.DataFrame(lines).fillna({"unpaired": ""})
    return run_lists.with_warnings(frame, part.warnings)


def _line(arm: Arm, comparison: Comparison | None, scale: float) -> dict[str, Any]:
    line: dict[str, Any] = {
        "setting": arm.label,
        "n": arm.n,
        "mean": number(arm.mean, scale=scale) if arm.n else "",
        "interval": interval((arm.low, arm.high), scale).strip(),
        "answer": "baseline" if arm.is_baseline else "",
    }
    if comparison is None:
        return line | dict.fromkeys(("difference", "p", "p_holm", "g"), "")
    return line | {
        "difference": difference_text(comparison, scale),
        "p": "" if comparison.p is None else probability(comparison.p),
        "p_holm": "" if comparison.p_holm is None else probability(comparison.p_holm),
        "g": "" if comparison.g is None else number(comparison.g, scale=100.0),
        "answer": answer(comparison),
    }


def excluded(part: Part) -> list[str]:
    """One sentence per group of excluded runs."""
    notes = []
    for arm in part.arms:
        by_reason: dict[str, list[int]] = {}
        for run in arm.excluded:
            by_reason.setdefault(run.reason, []).append(run.seed)
        for reason, seed_numbers in by_reason.items():
            seeds = f"seed{'s' if len(seed_numbers) > 1 else ''} {', '.join(map(str, seed_numbers))}"
            notes.append(f"Excluded: {arm.label}, {seeds} ({reason})")
        if arm.repeats:
            notes.append(
                f"Excluded: {arm.repeats} older run{'s' if arm.repeats > 1 else ''} of {arm.label} with a seed that ran again"
            )
    return notes


def _baseline(part: Part) -> str:
    return next((arm.label for arm in part.arms if arm.is_baseline), "the baseline")


# ------------------------------------------------------------------------------------------------------- the task's table


def beside(summary: pd.DataFrame, compared: Table | str | None) -> pd.DataFrame:
    """The rows of `tables.summary` with `label`, and as text the `difference` from the baseline and the `published` numbers."""
    parts = compared.parts if isinstance(compared, Table) else ()
    found = {(part.model, one.arm): difference_text(one, part.scale) for part in parts for one in part.comparisons}
    labelled = summary.assign(label=tables.labels(summary))
    lines = labelled[["model", "task", "method", "metric"]].astype(str).itertuples(index=False)
    return labelled.assign(
        difference=[found.get(key, "") for key in zip(labelled["model"], labelled["label"], strict=True)],
        published=[published_text(*line) for line in lines],
    )


def published_text(*line: str) -> str:
    """The published numbers for a model, task, method and metric, on the scale of our runs, each with its table; a dagger marks
    doubtful ones."""
    texts = []
    for printed in published.beside(*line):
        value = printed.on_our_scale
        assert value is not None and printed.value
        sd = None if printed.sd is None else printed.sd * value / printed.value
        statistic = "" if printed.statistic in ("", "mean") else f"{printed.statistic}; "
        texts.append(f"{spread(value, sd)}{' †' if printed.doubt else ''} ({statistic}{printed.where})")
    return "; ".join(texts)


def spread(mean: float | None, sd: float | None, places: int = 3) -> str:
    """`0.812 ± 0.010`."""
    return decimals(mean, places) + ("" if sd is None or math.isnan(sd) else f" ± {decimals(sd, places)}")


def difference_text(comparison: Comparison, scale: float) -> str:
    """`−0.006 [−0.042, 0.030]`."""
    if comparison.difference is None:
        return ""
    return number(comparison.difference, scale=scale, sign=True) + interval((comparison.low, comparison.high), scale)
