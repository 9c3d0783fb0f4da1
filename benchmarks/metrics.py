"""Time of the measures and of their reference implementations, in one run on one thread.

    python benchmarks/metrics.py [--repeats 7] [--quick] [--out docs]

Contenders of a row take turns; each figure is a median in milliseconds. Needs `benchmarks/requirements.txt`; IsoScore 2.0.1,
which has the import name of 1.0, is fetched with pip into a cache folder on first use.

Bars, for `isoscore` of float64 clouds: at (10000, 768) and (10000, 1024) within 1.5 times one BLAS symmetric rank-k update of
the same matrix and faster than IsoScore 1.0 and 2.0.1; at every size within 1e-10 of IsoScore 1.0. Exit code 1 if one is
missed or cannot be judged.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
import torch
from _report import Table, finish, machine, medians, milliseconds, options, parse
from IsoScore.IsoScore import IsoScore
from platformdirs import user_cache_path
from scipy.linalg.blas import dsyrk
from threadpoolctl import threadpool_limits

from isoviz import metrics

SIZES = ((1000, 768), (10000, 768), (10000, 1024), (256, 768), (100, 1024))
JUDGED = ((10000, 768), (10000, 1024))
TWONN_SIZES = (1000, 2000, 5000)
QUICK_SIZES, QUICK_TWONN = ((300, 32), (20, 64)), (60, 120)
OURS, FIRST, SECOND, FLOOR = "isoscore", "IsoScore 1.0", "IsoScore 2.0.1", "dsyrk"
NONE = "—"


def newer_isoscore() -> tuple[Callable[[Any], Any] | None, str]:
    """IsoScore 2.0.1's function of (points, dimensions), or None and why; its files never come near the import path."""
    folder = user_cache_path("isoviz") / "benchmarks" / "IsoScore-2.0.1"
    module = folder / "IsoScore" / "IsoScore.py"
    if not module.is_file():
        words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(folder)]
        done = subprocess.run([sys.executable, *words, "IsoScore==2.0.1"], capture_output=True, text=True)
        if done.returncode != 0:
            last = (done.stderr.strip() or "pip gave no reason").splitlines()[-1]
            return None, f"pip could not install IsoScore==2.0.1: {last}"
    spec = importlib.util.spec_from_file_location("isoscore_two", module)
    if spec is None or spec.loader is None:
        return None, "IsoScore 2.0.1 has no module IsoScore/IsoScore.py"
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.IsoScore, ""


def scikit_twonn() -> tuple[Callable[[Any], Any] | None, str]:
    """scikit-dimension's TwoNN as a function of (points, dimensions), or None and why."""
    try:
        from skdim.id import TwoNN
    except ImportError as error:
        return None, f"scikit-dimension could not be loaded ({error}): pip install -r benchmarks/requirements.txt"
    return lambda x: TwoNN().fit(x).dimension_, ""


def cloud(n: int, d: int) -> np.ndarray:
    """Gaussian points with a different variance in each dimension, float64."""
    return np.random.default_rng(0).normal(size=(n, d)) * np.random.default_rng(1).uniform(0.1, 3, size=d)


def score_table(sizes: tuple[tuple[int, int], ...], repeats: int) -> tuple[Table, list[str]]:
    """IsoScore against both packages and the floor; the last value lists the bars that were missed."""
    newer, why = newer_isoscore()
    header = ["n × d", *(f"{name}, ms" for name in (OURS, FIRST, SECOND, FLOOR)), "ours / dsyrk", "1.0 / ours"]
    table = Table("IsoScore of a float64 cloud", [*header, "2.0.1 / ours", "from 1.0", "from 2.0.1"])
    missed = [] if newer else [f"not judged against IsoScore 2.0.1: {why}"]
    for n, d in sizes:
        x = cloud(n, d)
        contenders: dict[str, Callable[[], Any]] = {
            OURS: partial(metrics.isoscore, x),
            # x.T is in Fortran order already, so nothing is copied; the smaller of XᵀX and XXᵀ, as ours takes
            FLOOR: partial(dsyrk, 1.0, x.T, trans=int(n < d)),
        }
        if n >= d:  # IsoScore 1.0 raises where there are fewer points than dimensions
            contenders[FIRST] = partial(IsoScore, x.T)
        if newer:
            contenders[SECOND] = partial(newer, x)
        took = medians(contenders, repeats)
        score = metrics.isoscore(x)
        off = {name: abs(score - float(contenders[name]())) for name in (FIRST, SECOND) if name in contenders}
        if (n, d) in JUDGED:
            if took[OURS] > 1.5 * took[FLOOR]:
                missed.append(f"{n} × {d}: {took[OURS] / took[FLOOR]:.2f} × dsyrk, allowed 1.5")
            missed += [f"{n} × {d}: not faster than {name}" for name in off if took[OURS] >= took[name]]
        if off.get(FIRST, 0.0) > 1e-10:
            missed.append(f"{n} × {d}: {off[FIRST]:.1e} from IsoScore 1.0, allowed 1e-10")
        table.rows.append(
            [f"{n} × {d}"]
            + [milliseconds(took[name]) if name in took else NONE for name in (OURS, FIRST, SECOND, FLOOR)]
            + [f"{took[OURS] / took[FLOOR]:.2f}"]
            + [f"{took[name] / took[OURS]:.1f}" if name in took else NONE for name in (FIRST, SECOND)]
            + [f"{off[name]:.0e}" if name in off else NONE for name in (FIRST, SECOND)]
        )
    table.notes += [
        "dsyrk is one BLAS symmetric rank-k update of the same matrix (of the smaller of XᵀX and XXᵀ), the floor.",
        "IsoScore 1.0 raises an error for n < d.",
    ]
    return table, missed


def measures_table(sizes: tuple[tuple[int, int], ...], repeats: int) -> Table:
    """The other measures, in turns with `isoscore`."""
    calls: dict[str, Callable[[Any], Any]] = {
        "isoscore": metrics.isoscore,
        "isoscore_unbiased": metrics.isoscore_unbiased,
        "explained_variance": metrics.explained_variance,
        "describe without twonn": partial(metrics.describe, twonn=False),
        "describe": metrics.describe,
    }
    table = Table("Our measures of the same clouds, ms", ["n × d", *calls, "unbiased / isoscore"])
    for n, d in sizes:
        x = cloud(n, d)
        took = medians({name: partial(call, x) for name, call in calls.items()}, repeats)
        ratio = took["isoscore_unbiased"] / took["isoscore"]
        table.rows.append([f"{n} × {d}", *(milliseconds(took[name]) for name in calls), f"{ratio:.2f}"])
    return table


def twonn_table(sizes: tuple[int, ...], d: int, repeats: int) -> Table:
    """TwoNN against scikit-dimension's, the same convention in both."""
    reference, why = scikit_twonn()
    table = Table(
        f"TwoNN dimension, d = {d}, ms", ["n", "twonn", "scikit-dimension", "theirs / ours", "relative difference"]
    )
    if why:
        table.notes.append(why)
    for n in sizes:
        x = cloud(n, d)
        contenders: dict[str, Callable[[], Any]] = {"twonn": partial(metrics.twonn, x)}
        if reference:
            contenders["scikit-dimension"] = partial(reference, x)
        took = medians(contenders, repeats)
        cells = [NONE] * 3
        if reference:
            apart = abs(float(metrics.twonn(x)) / float(reference(x)) - 1)
            other = took["scikit-dimension"]
            cells = [milliseconds(other), f"{other / took['twonn']:.1f}", f"{apart:.0e}"]
        table.rows.append([str(n), milliseconds(took["twonn"]), *cells])
    return table


def main() -> int:
    """Measure, print, write the section if asked; 1 if a bar is missed or could not be judged."""
    chosen = parse(options(__doc__, repeats=7))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", metrics.SmallSampleWarning)
    sizes, neighbours, d = (QUICK_SIZES, QUICK_TWONN, 32) if chosen.quick else (SIZES, TWONN_SIZES, 768)
    with threadpool_limits(1):
        scores, missed = score_table(sizes, chosen.repeats)
        others = measures_table(sizes, chosen.repeats), twonn_table(neighbours, d, chosen.repeats)
    packages = ["numpy", "scipy", "torch", "scikit-learn", "IsoScore", "scikit-dimension"]
    where = machine(packages, f"one thread, median of {chosen.repeats}")
    return finish(chosen, "metrics", "## Measures", where, missed, scores, *others)


if __name__ == "__main__":
    raise SystemExit(main())
