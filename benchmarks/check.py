"""How often `isoviz check` calls unchanged vectors changed, and how often it finds stated changes.

    python benchmarks/check.py [--draws 400] [--processes 2] [--record FILE] [--out docs]

Simulated sets of independent rows. Two sets are unchanged if their rows come from one population; paired rows share 90 % of their
variance, as the same texts in two versions of an encoder. Bars: of unchanged sets, at most 5 % with any measure called changed although
its tolerance is 0, within three standard errors; at the edge of a tolerance, at most 2.5 %, likewise. Half an hour on two cores; an
interrupted run goes on from its record.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import numpy as np
from _report import Table, machine, options, publish
from numpy.typing import NDArray

from isoviz import drift
from isoviz.drift.measures import MEASURES, Measured

Matrix = NDArray[np.float64]
RATE, EDGE = 0.05, 0.025
SHARED = 0.9
_COSTLY = {(5_000, 384): 0.25}
"""Rows and dimensions → share of the draws."""


class Setting(NamedTuple):
    population: str
    n: int
    d: int
    paired: bool
    change: str = "none"
    judged: tuple[str, float] | None = None
    """One measure and its tolerance; None: all with their defaults."""


def scale(d: int) -> Matrix:
    """Standard deviations of a decaying spectrum."""
    return np.asarray(np.arange(1, d + 1) ** -0.4)


def gaussian(z: Matrix, generator: np.random.Generator) -> Matrix:
    """A mean as long as 0.8 of the root of the variance."""
    widths = scale(z.shape[1])
    return z * widths + 0.8 * np.linalg.norm(widths) / math.sqrt(z.shape[1])


def heavy(z: Matrix, generator: np.random.Generator) -> Matrix:
    """Student's t with 5 degrees of freedom about the same mean."""
    return gaussian(z / np.sqrt(generator.chisquare(5, (len(z), 1)) / 5), generator)


def clusters(z: Matrix, generator: np.random.Generator) -> Matrix:
    """Ten topics."""
    centres = np.sin(np.outer(np.arange(1, 11), np.arange(1, z.shape[1] + 1) ** 2))  # nearly orthogonal
    return np.asarray(centres[generator.integers(0, 10, len(z))] + 0.5 * z)


POPULATIONS: dict[str, Callable[[Matrix, np.random.Generator], Matrix]] = {
    "Gaussian": gaussian,
    "heavy tails": heavy,
    "ten clusters": clusters,
}


def radius(d: int) -> float:
    """Root of the variance of the Gaussian population."""
    return float(np.linalg.norm(scale(d)))


def moved(x: Matrix, by: float) -> Matrix:
    """The mean moves by a share of the radius, in a direction of average width."""
    y = x.copy()
    y[:, x.shape[1] // 2] += by * radius(x.shape[1])
    return y


def longer(x: Matrix, factor: float) -> Matrix:
    """About the mean, so that only the covariance changes."""
    mean = gaussian(np.zeros((1, x.shape[1])), np.random.default_rng(0))
    return mean + factor * (x - mean)


def flatter(x: Matrix, share: float) -> Matrix:
    """The widest dimension grows until IsoScore has lost this share."""
    widths = scale(x.shape[1])
    low, high = 1.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _isoscore(widths, middle) > (1 - share) * _isoscore(widths, 1) else (low, middle)
    y = longer(x, 1.0)
    mean = gaussian(np.zeros((1, x.shape[1])), np.random.default_rng(0))[0, 0]
    y[:, 0] = mean + low * (x[:, 0] - mean)
    return y


def _isoscore(widths: Matrix, factor: float) -> float:
    variances = np.append((factor * widths[0]) ** 2, widths[1:] ** 2)
    return float((variances.sum() ** 2 / (variances @ variances) - 1) / (len(widths) - 1))


def rotated(x: Matrix) -> Matrix:
    return np.asarray(x @ np.linalg.qr(np.random.default_rng(7).normal(size=(x.shape[1],) * 2))[0])


def rounded(x: Matrix) -> Matrix:
    """Eight bits per number."""
    step = np.abs(x).max() / 127
    return np.asarray(np.round(x / step) * step)


def emptied(x: Matrix, share: float) -> Matrix:
    """Some rows become one and the same vector, as of an empty text."""
    y = x.copy()
    y[: round(share * len(x))] = x[0]
    return y


CHANGES: dict[str, Callable[[Matrix], Matrix]] = {
    "none": lambda x: x,
    "mean moved by exactly 0.1": lambda x: moved(x, 0.1),
    "covariance distance exactly 0.2": lambda x: longer(x, math.sqrt(1.2)),
    "IsoScore exactly 10 % lower": lambda x: flatter(x, 0.1),
    "mean moved by 0.2": lambda x: moved(x, 0.2),
    "20 % longer about the mean": lambda x: longer(x, 1.2),
    "IsoScore 30 % lower": lambda x: flatter(x, 0.3),
    "5 % of the rows one vector": lambda x: emptied(x, 0.05),
    "all rows rotated": rotated,
    "rounded to 8 bits": rounded,
}


def outcome(setting: Setting, seed: int) -> dict[str, Any]:
    """Of one draw: measures called changed with tolerances of 0, and the outcomes with those of the setting."""
    generator = np.random.default_rng([seed, setting.n, setting.d, setting.paired])
    make = POPULATIONS[setting.population]
    shared = generator.normal(size=(setting.n, setting.d))
    part = math.sqrt(SHARED) if setting.paired else 0.0
    sets = []
    again = generator.bit_generator.random_raw()
    for side in (0, 1):
        own = np.random.default_rng([again, side]).normal(size=shared.shape)
        other = np.random.default_rng([again, 0 if setting.paired else side, 2])  # of lengths and topics
        sets.append(make(part * shared + math.sqrt(1 - part**2) * own, other))
    with patch.object(drift, "measured", lambda *_: Measured({}, {}, {})):  # which a check does not read
        before = drift.baseline(sets[0])
    judged = None if setting.judged is None else dict([setting.judged])
    after = CHANGES[setting.change](sets[0] if setting.change == "rounded to 8 bits" else sets[1])
    result = drift.check(after, before, fail_on=judged, same_rows=setting.paired)
    strict = [one.measure for one in result.drifts if one.outcome != "not judged" and (one.low > 0 or one.high < 0)]
    return {"strict": strict, "changed": result.with_outcome("changed"), "unclear": result.with_outcome("cannot tell")}


class Runs:
    """Runs settings in a pool of processes, and keeps what they found in a file, if there is one."""

    def __init__(self, pool: ProcessPoolExecutor, draws: int, record: Path | None) -> None:
        self.pool, self.draws, self.record = pool, draws, record
        self.found = json.loads(record.read_text()) if record is not None and record.is_file() else {}

    def __call__(self, setting: Setting, share: float = 1.0) -> dict[str, Any]:
        count = round(self.draws * share * _COSTLY.get((setting.n, setting.d), 1.0))
        key = f"{count} draws, {setting}"
        if key not in self.found:
            outcomes = list(self.pool.map(outcome, [setting] * count, range(count), chunksize=5))
            first = Counter(one["changed"][0] for one in outcomes if one["changed"])
            self.found[key] = {
                "draws": count,
                "strict": sum(bool(one["strict"]) for one in outcomes) / count,
                "changed": sum(bool(one["changed"]) for one in outcomes) / count,
                "unclear": sum(bool(one["unclear"]) and not one["changed"] for one in outcomes) / count,
                "first": ", ".join(name for name, _ in first.most_common(2)),
                "measures": Counter(name for one in outcomes for name in one["strict"]),
            }
            print(key, self.found[key], flush=True)
            if self.record is not None:
                self.record.write_text(json.dumps(self.found, indent=1))
        found: dict[str, Any] = self.found[key]
        return found


def main() -> int:
    """0 if both bars are met."""
    parser = options(__doc__, out="check.md")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="keep what was found, to go on after an interruption"
    )
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.processes) as pool:
        runs = Runs(pool, chosen.draws, chosen.record)
        (alarms, met), (edge, held), power = _alarms(runs), _edge(runs), _power(runs)
    publish(chosen.out, "tolerances", _tolerances(), page="check.md")
    about = machine(("numpy", "scipy"), "one per process")
    publish(chosen.out, "check", about, alarms, edge, power, page="check.md")
    return 0 if met and held else 1


def _tolerances() -> Table:
    table = Table("Default tolerances", ["measure", "tolerance", "this is"])
    for name, one in MEASURES.items():
        amount = f"{100 * one.tolerance:g} % of the baseline's" if one.relative else f"{one.tolerance:g}"
        table.rows.append([name, amount if one.judged else "judged only if named", one.reason])
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _bound(rate: float, draws: int) -> float:
    return rate + 3 * math.sqrt(rate * (1 - rate) / draws)


def _name(setting: Setting) -> list[str]:
    return [setting.population, f"{setting.n:,} × {setting.d}", "yes" if setting.paired else "no"]


def _alarms(runs: Runs) -> tuple[Table, bool]:
    header = [
        "unchanged population",
        "n × d",
        "paired",
        "draws",
        "changed, tolerances 0",
        "changed, default tolerances",
        "cannot tell",
    ]
    table, met = Table("False alarms (stated rate: 5 % for any measure)", header), True
    settings = [
        Setting(population, n, d, paired)
        for population in POPULATIONS
        for d in (32, 384)
        for n in (60, 200, 1_000, 5_000)
        for paired in (False, True)
        if population != "ten clusters" or n == 200
    ]
    for setting in settings:
        found = runs(setting)
        met &= found["strict"] <= _bound(RATE, found["draws"])
        shares = [_percent(found[name]) for name in ("strict", "changed", "unclear")]
        table.rows.append([*_name(setting), f"{found['draws']:,}", *shares])
    table.notes.append("Of 5,000 rows, the 2,000 of the baseline are compared.")
    return table, met


def _edge(runs: Runs) -> tuple[Table, bool]:
    title = "Changes exactly as large as the tolerance of the only judged measure (stated rate: 2.5 %)"
    table, met = Table(title, ["change", "n × d", "paired", "draws", "called changed"]), True
    for change, measure in zip(
        list(CHANGES)[1:4], ("mean_shift", "covariance_distance", "isoscore_unbiased"), strict=True
    ):
        for n, d, paired in ((200, 32, False), (200, 32, True), (1_000, 384, False)):
            tolerance = 0.1 * _isoscore(scale(d), 1) if measure == "isoscore_unbiased" else MEASURES[measure].tolerance
            setting = Setting("Gaussian", n, d, paired, change, (measure, tolerance))
            found = runs(setting)
            met &= found["changed"] <= _bound(EDGE, found["draws"])
            table.rows.append([change, *_name(setting)[1:], f"{found['draws']:,}", _percent(found["changed"])])
    return table, met


def _power(runs: Runs) -> Table:
    header = ["change", "n × d", "paired", "draws", "called changed", "cannot tell", "named first"]
    table = Table("Changes found with the default tolerances", header)
    for change in list(CHANGES)[4:]:
        for n, d, paired in ((200, 32, False), (1_000, 32, False), (1_000, 32, True), (1_000, 384, False)):
            if change == "rounded to 8 bits" and not paired:
                continue
            setting = Setting("Gaussian", n, d, paired, change)
            found = runs(setting, 0.25)
            shares = [_percent(found["changed"]), _percent(found["unclear"])]
            table.rows.append([change, *_name(setting)[1:], f"{found['draws']:,}", *shares, found["first"]])
    return table


if __name__ == "__main__":
    sys.exit(main())
