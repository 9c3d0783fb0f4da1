"""Forward and backward of the penalties, against a penalty through eigenvalues or singular values, on one thread.

    python benchmarks/penalties.py [--repeats 7] [--quick] [--out docs]

I-STAR's penalty at ζ = 0.2: ours (closed form, backward by hand), the closed form with torch's own backward, and the spectrum
by `eigvalsh` and by `svdvals`; then the unbiased and the cosine penalty, which have no such counterpart. Contenders of a row
take turns; figures are medians in milliseconds. The error of a gradient is its relative distance from the float64 `eigvalsh`
gradient of the same points. Exit code 1 if ours is further from it than 1e-10 in float64.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import psutil
import torch
from _report import Table, finish, machine, medians, milliseconds, options, parse
from threadpoolctl import threadpool_limits

from isoviz import metrics

ZETA = 0.2
FULL = (
    (256, torch.float32),
    (256, torch.float64),
    (4096, torch.float32),
    (4096, torch.float64),
    (49152, torch.float32),
)
QUICK = ((16, torch.float32), (16, torch.float64), (200, torch.float32), (200, torch.float64))
LARGE = 20_000  # from here on five repeats: a call takes seconds
OURS, PLAIN, EIGEN, SINGULAR = "ours", "closed, autograd", "eigvalsh", "svdvals"
Penalty = Callable[[torch.Tensor], torch.Tensor]


def mixed(points: torch.Tensor, shrinkage: torch.Tensor) -> torch.Tensor:
    """Σ_ζ (d, d) by elementary operations."""
    centred = points - points.mean(0)
    return (1 - ZETA) * (centred.T @ centred) / (len(points) - 1) + ZETA * shrinkage


def one_minus(total: torch.Tensor, squares: torch.Tensor, d: int) -> torch.Tensor:
    """1 − IsoScore* from the sum and the sum of squares of the spectrum."""
    return 1 - (total**2 / squares - 1) / (d - 1)


def by_autograd(points: torch.Tensor, shrinkage: torch.Tensor) -> torch.Tensor:
    """The closed form with torch's own backward."""
    cov = mixed(points, shrinkage)
    return one_minus(cov.diagonal().sum(), cov.square().sum(), points.shape[1])


def by_eigenvalues(points: torch.Tensor, shrinkage: torch.Tensor) -> torch.Tensor:
    """The spectrum of the symmetric matrix."""
    values = torch.linalg.eigvalsh(mixed(points, shrinkage))
    return one_minus(values.sum(), values.square().sum(), points.shape[1])


def by_singular_values(points: torch.Tensor, shrinkage: torch.Tensor) -> torch.Tensor:
    """The same numbers the way the method's released code takes them."""
    values = torch.linalg.svdvals(mixed(points, shrinkage))
    return one_minus(values.sum(), values.square().sum(), points.shape[1])


def gradient(penalty: Penalty, x: torch.Tensor) -> torch.Tensor:
    """∂penalty/∂x, (n, d): one forward and one backward pass."""
    (grad,) = torch.autograd.grad(penalty(x), x)
    return grad


def room_for(n: int, d: int) -> str:
    """Why a row must be left out, or nothing: the float64 reference holds about eight copies of the points."""
    needed, free = 8 * 8 * n * d, psutil.virtual_memory().available
    return "" if needed < free else f"n = {n} left out: it needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free."


def istar_table(rows: tuple[tuple[int, torch.dtype], ...], d: int, repeats: int) -> tuple[Table, list[str]]:
    """I-STAR's penalty; the last value lists what missed the bound on the gradient."""
    names = (OURS, PLAIN, EIGEN, SINGULAR)
    header = ["n × d", "dtype", *(f"{name}, ms" for name in names), "eigvalsh / ours", "svdvals / ours"]
    table = Table(f"I-STAR penalty, ζ = {ZETA}, forward and backward", [*header, *(f"error, {name}" for name in names)])
    missed = []
    for n, dtype in rows:
        if why := room_for(n, d):
            table.notes.append(why)
            continue
        x, shrinkage = points_and_shrinkage(n, d, dtype)
        penalties: dict[str, Penalty] = {
            OURS: partial(metrics.istar_penalty, shrinkage=metrics.Shrinkage(shrinkage), zeta=ZETA),
            PLAIN: partial(by_autograd, shrinkage=shrinkage),
            EIGEN: partial(by_eigenvalues, shrinkage=shrinkage),
            SINGULAR: partial(by_singular_values, shrinkage=shrinkage),
        }
        took = medians({name: partial(gradient, penalty, x) for name, penalty in penalties.items()}, of(n, repeats))
        wide = x.detach().double().requires_grad_()
        exact = gradient(partial(by_eigenvalues, shrinkage=shrinkage.double()), wide)
        size = exact.norm()
        off = {name: float((gradient(penalty, x) - exact).norm() / size) for name, penalty in penalties.items()}
        if dtype == torch.float64 and off[OURS] > 1e-10:
            missed.append(f"{n} × {d}: gradient {off[OURS]:.1e} from float64 eigvalsh, allowed 1e-10")
        kind = str(dtype).removeprefix("torch.")
        table.rows.append(
            [f"{n} × {d}", kind, *(milliseconds(took[name]) for name in names)]
            + [f"{took[name] / took[OURS]:.1f}" for name in (EIGEN, SINGULAR)]
            + [f"{off[name]:.0e}" for name in names]
        )
    table.notes.append(
        "error: relative distance of the gradient from the float64 eigvalsh gradient of the same points."
    )
    return table, missed


def others_table(rows: tuple[tuple[int, torch.dtype], ...], d: int, repeats: int) -> Table:
    """The penalties that need no spectrum, with I-STAR's in the same turns as a measure."""
    table = Table(
        "Our penalties, forward and backward, ms",
        ["n × d", "dtype", "I-STAR", "unbiased", "cosine", "unbiased / I-STAR", "cosine / I-STAR"],
    )
    for n, dtype in rows:
        if why := room_for(n, d):
            table.notes.append(why)
            continue
        x, shrinkage = points_and_shrinkage(n, d, dtype)
        istar = partial(metrics.istar_penalty, shrinkage=metrics.Shrinkage(shrinkage), zeta=ZETA)
        contenders = {"I-STAR": istar, "unbiased": metrics.istar_unbiased_penalty, "cosine": metrics.cosine_penalty}
        took = medians({name: partial(gradient, penalty, x) for name, penalty in contenders.items()}, of(n, repeats))
        table.rows.append(
            [f"{n} × {d}", str(dtype).removeprefix("torch."), *(milliseconds(took[name]) for name in contenders)]
            + [f"{took[name] / took['I-STAR']:.2f}" for name in ("unbiased", "cosine")]
        )
    return table


def points_and_shrinkage(n: int, d: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """A Gaussian cloud (n, d) of unequal variances, and Σ_S (d, d) of other points of the same distribution."""
    generator = torch.Generator().manual_seed(0)
    scale = torch.linspace(0.1, 3, d, dtype=torch.float64)
    x = (torch.randn(n, d, generator=generator, dtype=torch.float64) * scale).to(dtype)
    sample = torch.randn(3 * d, d, generator=generator, dtype=torch.float64) * scale
    return x.requires_grad_(), torch.cov(sample.T).to(dtype)


def of(n: int, repeats: int) -> int:
    """Repeats of a row."""
    return 5 if n >= LARGE else repeats


def main() -> int:
    """Measure, print, write the section if asked; 1 if the bound on the gradient is missed."""
    chosen = parse(options(__doc__, repeats=7))
    torch.set_num_threads(1)
    rows, d = (QUICK, 32) if chosen.quick else (FULL, 768)
    with threadpool_limits(1):
        istar, missed = istar_table(rows, d, chosen.repeats)
        others = others_table(rows, d, chosen.repeats)
    repeated = f"one thread, median of {chosen.repeats}" + ("" if chosen.quick else f" (5 for n ≥ {LARGE})")
    where = machine(["torch", "numpy"], repeated)
    return finish(chosen, "penalties", "## Penalties", where, missed, istar, others)


if __name__ == "__main__":
    raise SystemExit(main())
