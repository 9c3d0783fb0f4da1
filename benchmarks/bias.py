"""What the measures read from few points, beside their true values: means over Gaussian clouds of known spectrum.

    python benchmarks/bias.py [--draws 40] [--quick] [--out docs]

Clouds of 32 dimensions with mean 0, of two spectra: even, and led by variances of 10, 6, 4 and 4 among ones, as in I-STAR's figure 2.
Measures of pairs, groups and texts get independent partners, groups of 4 points without means of their own, and texts of 8 tokens.
A measure without a population value in closed form has no true value here, but its row shows how it changes with n. The claims
of the catalogue (`enough`) are tested in `tests/metrics/test_enough_points.py`, for d = 2, 8 and 32.

The bar: measures that are declared unbiased are within four standard errors of their true value at every n.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _report import ROOT, Table, finish, machine, options

from isoviz import metrics
from isoviz.metrics.protocol import Metric

sys.path.insert(0, str(ROOT / "tests" / "metrics"))
from test_enough_points import TRUTH, spectra

D = 32
SIZES = (32, 160, 640, 2000)
NAMES = ("even", "led by four")
TRUE: dict[str, Callable[[np.ndarray], Any]] = {
    **TRUTH,
    "alignment": lambda spectrum: 2.0,  # of independent partners, symmetric around 0
    "rankme": lambda spectrum: TRUTH["effective_rank"](np.sqrt(spectrum)),
}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=40, help="clouds for each mean")
    parser.add_argument(
        "--quick", action="store_true", help="three clouds and few points, to try the script; no bar is judged"
    )
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes, draws = (SIZES[:2], 3) if chosen.quick else (SIZES, chosen.draws)
    table = Table(
        f"Mean ± standard deviation over {draws} clouds, d = {D}",
        ["measure", "spectrum", "true value", *(f"n = {n:,}" for n in sizes)],
    )
    missed: list[str] = []
    for metric in metrics.catalogue().values():
        if metric.gives == "number" and metric.kinds != {"weights"}:
            for name, spectrum in zip(NAMES, spectra(D), strict=True):
                missed += _row(table, metric, name, spectrum, sizes, draws)
                print(table.rows[-1], flush=True)
    table.notes.append(
        "Alignment: independent partners. LiDAR: groups of 4 points without means of their own. Prompt entropy: texts of 8 tokens. "
        "Without a true value: none in closed form."
    )
    about = f"Gaussian clouds of known spectrum. {machine(['numpy', 'scipy'], '1 thread')}"
    return finish(chosen, "bias", "## What the measures read from few points", about, missed, table)


def _row(
    table: Table, metric: Metric, name: str, spectrum: np.ndarray, sizes: tuple[int, ...], draws: int
) -> list[str]:
    """Add a line; which bars it misses."""
    expected = float(TRUE[metric.slug](spectrum)) if metric.slug in TRUE else None
    cells, missed = [], []
    for n in sizes:
        values = _values(metric, spectrum, n, draws)
        mean, spread = float(values.mean()), float(values.std(ddof=1))
        cells.append(f"{mean:.3g} ± {spread:.2g}")
        if metric.enough.bias == "none" and expected is not None and abs(mean - expected) > 4 * spread / draws**0.5:
            missed.append(f"{metric.slug}, {name}, n = {n}: {mean:.3g} for {expected:.3g}")
    table.rows.append([metric.number_title, name, "—" if expected is None else f"{expected:.3g}", *cells])
    return missed


def _values(metric: Metric, spectrum: np.ndarray, n: int, draws: int) -> np.ndarray:
    """(draws,) values of independent clouds, the same for each measure."""
    generator, rows = np.random.default_rng(n), np.arange(n)
    values = []
    for _ in range(draws):
        cloud, partners = (generator.normal(size=(n, D)) * np.sqrt(spectrum) for _ in range(2))
        every = {
            "shrinkage_cov": np.diag(spectrum),
            "zeta": 0.2,
            "partners": partners,
            "groups": rows // 4,
            "texts": rows // 8,
        }
        values.append(metric.evaluate(cloud, **{name: every[name] for name in metric.inputs}))
    return np.array(values, dtype=float)


if __name__ == "__main__":
    raise SystemExit(main())
