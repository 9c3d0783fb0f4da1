"""The tables of `real_encoder.py`: one line per run, means over seeds, and the papers' claims checked on these runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from _report import Table

NONE = "—"
KEPT = 0.01
"""A metric that falls by no more than this counts as kept."""
MOVED = 0.05
"""A mean cosine that changes by at least this has moved."""
STILL = 0.10
"""An IsoScore that changes by less than this share of the baseline's has hardly moved."""
SEVERAL = 2.0
"""From this ratio on, a time is several times another."""


@dataclass(frozen=True)
class Line:
    """One run.

    Attributes:
        method: the variant's name in tables; `slug` and `lam` (None where it has none) say what it is.
        metric: the task's primary metric, named `metric_name`.
        isoscore, unbiased, ev, twonn, cosine: of the head cloud, the classifier's input.
        pooled, pooled_ev: IsoScore and EV_k of the method's input.
        isoscore_star, tokens, tokens_cosine: IsoScore*, IsoScore and mean cosine of all layers' tokens.
        i1, i2, norm: of the output weight.
        seconds: of training, second stage included.
    """

    task: str
    method: str
    slug: str
    seed: int
    status: str = "finished"
    lam: float | None = None
    metric_name: str = ""
    metric: float | None = None
    isoscore: float | None = None
    unbiased: float | None = None
    isoscore_star: float | None = None
    ev: tuple[float, ...] = ()
    pooled: float | None = None
    pooled_ev: tuple[float, ...] = ()
    tokens: float | None = None
    tokens_cosine: float | None = None
    i1: float | None = None
    i2: float | None = None
    norm: float | None = None
    twonn: float | None = None
    cosine: float | None = None
    seconds: float | None = None


def _at(values: Sequence[float], k: int) -> float | None:
    return values[k] if k < len(values) else None


COLUMNS: dict[str, Callable[[Line], float | None]] = {
    "metric": lambda line: line.metric,
    "IsoScore (head)": lambda line: line.isoscore,
    "unbiased": lambda line: line.unbiased,
    "IsoScore*": lambda line: line.isoscore_star,
    "EV_1": lambda line: _at(line.ev, 0),
    "EV_2": lambda line: _at(line.ev, 1),
    "EV_3": lambda line: _at(line.ev, 2),
    "EV_1 of the input (pooled)": lambda line: _at(line.pooled_ev, 0),
    "I1": lambda line: line.i1,
    "I2": lambda line: line.i2,
    "‖W‖": lambda line: line.norm,
    "TwoNN": lambda line: line.twonn,
    "mean cosine": lambda line: line.cosine,
    "train seconds": lambda line: line.seconds,
}


def runs_table(lines: Sequence[Line]) -> Table:
    """One row per run; one that did not finish says how it ended."""
    table = Table("Runs", ["task", "method", "seed", *COLUMNS])
    for line in lines:
        method = line.method if line.status == "finished" else f"{line.method} ({line.status})"
        table.rows.append([line.task, method, str(line.seed), *(_number(of(line)) for of in COLUMNS.values())])
    table.notes.append("metric: " + "; ".join(f"{task} {name}" for task, name in _metric_names(lines).items()) + ".")
    return table


def means_table(lines: Sequence[Line]) -> Table:
    """Mean ± sample standard deviation over the seeds that have a value."""
    table = Table("Mean ± standard deviation over seeds", ["task", "method", "seeds", *COLUMNS])
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.task, line.method), []).append(line)
    for (task, method), group in groups.items():
        cells = [_spread([value for line in group if (value := of(line)) is not None]) for of in COLUMNS.values()]
        table.rows.append([task, method, str(len(group)), *cells])
    return table


def _metric_names(lines: Iterable[Line]) -> dict[str, str]:
    return {line.task: line.metric_name for line in lines if line.metric_name}


def _number(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4f}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return NONE
    mean = _number(statistics.mean(values))
    return mean if len(values) == 1 else f"{mean} ± {_number(statistics.stdev(values))}"


# ---- claims --------------------------------------------------------------------------------------------------------------

Check = tuple[bool, str]
"""Whether it holds in one seed, and that seed's figures."""


def claims_table(lines: Sequence[Line]) -> Table:
    """Each claim on each task: yes if it holds in every seed with a value, with the figures of each seed."""
    table = Table("The papers' claims on these runs", ["task", "claim", "seen", "seeds", "figures, seed by seed"])
    for task in dict.fromkeys(line.task for line in lines):
        here = _ByVariant([line for line in lines if line.task == task and line.status == "finished"])
        for claim, check in CLAIMS.items():
            checks = check(here)
            confirmed = sum(holds for holds, _ in checks)
            seen = "not measured" if not checks else "yes" if confirmed == len(checks) else "no"
            figures = "; ".join(text for _, text in checks) or NONE
            table.rows.append([task, claim, seen, f"{confirmed} of {len(checks)}" if checks else NONE, figures])
    table.notes.append(
        f"Rules: yes means in every seed. A metric is kept if it falls by at most {KEPT:g}; a mean cosine moves by at least "
        f"{MOVED:g}; an IsoScore hardly moves if it changes by less than {STILL:.0%} of the baseline's; several times means at "
        f"least {SEVERAL:g} times. Compared with the baseline of the same seed."
    )
    return table


class _ByVariant:
    """The finished runs of one task, found by method and strength, seed by seed."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def of(self, slug: str, sign: int = 0) -> dict[int, Line]:
        """By seed; `sign` chooses among strengths."""
        chosen = [line for line in self.lines if line.slug == slug and (not sign or (line.lam or 0) * sign > 0)]
        return {line.seed: line for line in chosen}

    def pairs(self, first: dict[int, Line], second: dict[int, Line]) -> list[tuple[Line, Line]]:
        return [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]


def _raises_isoscore(here: _ByVariant) -> list[Check]:
    return [
        (line.isoscore > line.pooled, f"{_number(line.pooled)} → {_number(line.isoscore)}")
        for line in here.of("isolayer").values()
        if line.isoscore is not None and line.pooled is not None
    ]


def _keeps_metric(here: _ByVariant) -> list[Check]:
    pairs = here.pairs(here.of("isolayer"), here.of("baseline"))
    return [
        (line.metric - base.metric >= -KEPT, f"{line.metric - base.metric:+.4f}")
        for line, base in pairs
        if line.metric is not None and base.metric is not None
    ]


def _lowers_ev(here: _ByVariant) -> list[Check]:
    return [
        (all(ratio < 1 for ratio in ratios), _ratios(ratios))
        for line in here.of("isobn").values()
        if (ratios := _ev_ratios(line))
    ]


def _more_than_batchnorm(here: _ByVariant) -> list[Check]:
    checks: list[Check] = []
    for ours, foil in here.pairs(here.of("isobn"), here.of("batchnorm")):
        a, b = _ev_ratios(ours), _ev_ratios(foil)
        if a and b:
            holds = all(one < other for one, other in zip(a, b, strict=True))
            checks.append((holds, f"{_ratios(a)} against {_ratios(b)}"))
    return checks


def _ev_ratios(line: Line) -> list[float]:
    """EV_k of the method's output over EV_k of its input, k = 1, 2, 3; none where one of them is missing."""
    if len(line.ev) < 3 or len(line.pooled_ev) < 3:
        return []
    return [after / before for after, before in zip(line.ev[:3], line.pooled_ev[:3], strict=True)]


def _ratios(values: Sequence[float]) -> str:
    return "/".join(f"{value:.3f}" for value in values)


def _lower(name: str, first: tuple[str, int], second: tuple[str, int]) -> Callable[[_ByVariant], list[Check]]:
    """That a value is lower in the first variant than in the second."""

    def check(here: _ByVariant) -> list[Check]:
        pairs = [(getattr(a, name), getattr(b, name)) for a, b in here.pairs(here.of(*first), here.of(*second))]
        return [(a < b, f"{_number(a)} against {_number(b)}") for a, b in pairs if a is not None and b is not None]

    return check


def _mean_not_shape(cosine: str, score: str) -> Callable[[_ByVariant], list[Check]]:
    """That CosReg moves the mean cosine and hardly the IsoScore of one cloud."""

    def check(here: _ByVariant) -> list[Check]:
        checks: list[Check] = []
        for line, base in here.pairs(here.of("cosreg"), here.of("baseline")):
            values = [getattr(means, name) for name in (cosine, score) for means in (base, line)]
            if None in values:
                continue
            a, b, c, d = values
            holds = abs(b - a) >= MOVED and abs(d - c) < STILL * abs(c)
            checks.append((holds, f"cosine {a:.3f} → {b:.3f}, IsoScore {_number(c)} → {_number(d)}"))
        return checks

    return check


def _takes_several_times(here: _ByVariant) -> list[Check]:
    pairs = here.pairs(here.of("flow"), here.of("baseline"))
    return [
        (line.seconds >= SEVERAL * base.seconds, f"{line.seconds / base.seconds:.2f} ×")
        for line, base in pairs
        if line.seconds is not None and base.seconds
    ]


CLAIMS: dict[str, Callable[[_ByVariant], list[Check]]] = {
    "IsoLayer raises IsoScore (its input → its output)": _raises_isoscore,
    "IsoLayer keeps or lifts the metric (minus the baseline's)": _keeps_metric,
    "IsoBN lowers EV_1/EV_2/EV_3 (output over input)": _lowers_ev,
    "IsoBN lowers them more than batch normalisation": _more_than_batchnorm,
    "λ < 0 lowers IsoScore* (against the baseline)": _lower("isoscore_star", ("istar", -1), ("baseline", 0)),
    "λ < 0 lowers IsoScore* (against λ > 0)": _lower("isoscore_star", ("istar", -1), ("istar", 1)),
    "CosReg moves the mean cosine, hardly IsoScore (head)": _mean_not_shape("cosine", "isoscore"),
    "CosReg moves the mean cosine, hardly IsoScore (all layers' tokens)": _mean_not_shape("tokens_cosine", "tokens"),
    "Spectrum control, polynomial, shrinks ‖W‖": _lower("norm", ("spectrum_pol", 0), ("baseline", 0)),
    "Spectrum control, exponential, shrinks ‖W‖": _lower("norm", ("spectrum_exp", 0), ("baseline", 0)),
    "Flow costs several times the time": _takes_several_times,
}
