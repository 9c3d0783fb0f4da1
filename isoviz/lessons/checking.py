"""Checks a lesson: draws its clouds with numpy, computes its numbers with `isoviz.metrics` and tests its claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics, posthoc
from isoviz.lessons.expressions import holds, parse_claim
from isoviz.lessons.reading import NUMBERS, TRUE, ChoiceGuess, Lesson
from isoviz.lessons.state import PARAMETERS, State
from isoviz.metrics.partition_function import WeightSample
from isoviz.metrics.protocol import Metric
from isoviz.metrics.sample import Sample

SEEDS = (0, 1, 2)
"""A claim must not depend on a single draw."""
ROUNDING = 1e-9
"""By which a number may exceed a slider's end: IsoScore of a whitened cloud is 1 or 1 + 2e-16, as the processor rounds."""

Cloud = NDArray[np.float64]


def problems(lesson: Lesson, seeds: Sequence[int] = SEEDS) -> list[str]:
    """One sentence for each failure in a lesson; empty if everything holds for every seed."""
    drawn = ([numbers(state, seed, lesson.numbers()) for state in lesson.states()] for seed in seeds)
    return list(dict.fromkeys(sentence for at in drawn for sentence in _problems(lesson, at)))


def _problems(lesson: Lesson, at: list[dict[str, float]]) -> list[str]:
    def value_at(name: str, step: int) -> float:
        return at[step].get(name, float("nan"))

    sentences = []
    for k, step in enumerate(lesson.steps, start=1):
        if isinstance(step.guess, ChoiceGuess):
            right = [option.text for option in step.guess.options if holds(parse_claim(option.when), value_at)]
            if len(right) != 1:
                answers = " and ".join(f"“{text}”" for text in right) or "none"
                sentences.append(f"step {k}: exactly one answer must be true, got {answers}")
        else:
            value = value_at(step.guess.of, k)
            if not step.guess.low - ROUNDING <= value <= step.guess.high + ROUNDING:
                sentences.append(
                    f"step {k}: {step.guess.of} is {value:.4g}, which the slider from {step.guess.low:g} to {step.guess.high:g} "
                    "cannot reach"
                )
    for number, claim in enumerate(lesson.claims, start=1):
        if not holds(parse_claim(claim.holds), value_at):
            sentences.append(f"claim {number} does not hold: {claim.holds}")
    return sentences


def numbers(state: State, seed: int, names: Iterable[str] = NUMBERS) -> dict[str, float]:
    """The numbers of a state: those after its transforms, and `true.` numbers of the population before them."""
    population = covariance(state, seed)
    values = measured(transformed(draw(state, seed), state), population, state, names)
    if not state.transforms:
        values |= {
            TRUE + name: metrics.isoscore_from_covariance(population) for name in ("isoscore", "isoscore_unbiased")
        }
    return values


def transformed(cloud: Cloud, state: State) -> Cloud:
    """A cloud after the transforms of its state."""
    for step in state.transforms:
        if step.slug == "unit_norm":
            lengths = np.linalg.norm(cloud, axis=1, keepdims=True)
            cloud = cloud / np.where(lengths > 0, lengths, 1.0)
            continue
        # centring is whitening with strength 0
        slug, values = ("zca", {"strength": 0.0}) if step.slug == "centring" else (step.slug, PARAMETERS[step.slug])
        cloud = np.asarray(posthoc.get(slug)(**(values | step.parameters)).fit_transform(cloud))
    return cloud


def measured(cloud: Cloud, population: Cloud, state: State, names: Iterable[str] = NUMBERS) -> dict[str, float]:
    """The numbers of a cloud from `isoviz.metrics`, as far as this state has them; `population` is the true covariance, the target
    of IsoScore*'s shrinkage."""
    inputs = {} if state.transforms else {"shrinkage_cov": population, "zeta": state.zeta}
    values = estimates(cloud, [metrics.get(name) for name in names if name in metrics.catalogue()], inputs)
    if state.clusters > 1 and not state.transforms:
        values["best_accuracy"] = best_accuracy(state.separation, len(_centres(state)))
    return values


def estimates(cloud: Cloud, of: Iterable[Metric], inputs: dict[str, Any]) -> dict[str, float]:
    """slug → value of a cloud (n, d), or of its rows as weights; nan if undefined. Leaves out metrics that need other inputs."""
    sample, weights = Sample(cloud, inputs=inputs), WeightSample(cloud)
    return {
        metric.slug: float(metric.estimate(weights if metric.kinds == {"weights"} else sample).value)
        for metric in of
        if metric.estimate is not None and set(metric.inputs) <= set(inputs)
    }


def best_accuracy(separation: float, clusters: int = 2) -> float:
    """Accuracy of the best classifier of round, equally large clusters whose centres are all equally far apart.

    With C clusters it is ∫ φ(z) Φ(z + s/√2)^(C − 1) dz, for two Φ(s/2) (Proakis, Digital Communications, on orthogonal signals).

    Args:
        separation: distance s between any two centres, in standard deviations of a cluster.
        clusters: number of clusters C, at least 2.
    """
    from scipy.integrate import quad
    from scipy.stats import norm

    def density(z: float) -> float:
        return float(norm.pdf(z) * norm.cdf(z + separation / np.sqrt(2)) ** (clusters - 1))

    return float(quad(density, -10, 10, epsabs=1e-13, epsrel=1e-13)[0])


def draw(state: State, seed: int) -> Cloud:
    """A cloud (n, d) of this state. The browser uses another generator: the distribution is the same, the points are not."""
    rng = np.random.default_rng([seed, state.seed])
    n, d = state.n, state.d
    points = rng.standard_normal((n, d))
    if state.tails:
        degrees = max(3, state.tails)
        points *= np.sqrt((degrees - 2) / rng.chisquare(degrees, size=(n, 1)))
    centres = _centres(state)
    labels = rng.integers(len(centres), size=n)
    points = points @ _mixing(state) * _stretch(state) + centres[labels] + state.shift
    copies = min(n - 1, round(state.duplicates * n))
    if copies:
        points[n - copies :] = points[rng.integers(n - copies, size=copies)]
    return state.scale * points @ _rotation(state, seed)


def covariance(state: State, seed: int) -> Cloud:
    """The (d, d) covariance of the distribution in `draw`."""
    root = _mixing(state) * _stretch(state)
    centres = _centres(state)
    apart = np.cov(centres.T, bias=True) if state.clusters > 1 else 0
    rotation = _rotation(state, seed)
    return state.scale**2 * rotation.T @ (root.T @ root + apart) @ rotation


def _stretch(state: State) -> Cloud:
    j = np.arange(state.d)
    variances = {
        "flat": np.ones(state.d),
        "power": (j + 1.0) ** -state.decay,
        "exponential": np.exp(-state.decay * j / (state.d - 1)),
        "step": np.where(j < min(state.rank, state.d), 1.0, state.floor),
    }[state.spectrum]
    stretch = np.sqrt(variances / variances.mean())
    stretch[min(state.rogue, state.d) - 1] *= state.rogueScale
    return stretch


def _mixing(state: State) -> Cloud:
    """The symmetric root of the correlation matrix, which has blocks with 1 on the diagonal and ρ elsewhere."""
    correlation = np.eye(state.d)
    for first in range(0, state.d, state.block):
        block_slice = slice(first, first + state.block)
        correlation[block_slice, block_slice] += state.rho * (1 - correlation[block_slice, block_slice])
    values, directions = np.linalg.eigh(correlation)
    return directions * np.sqrt(np.clip(values, 0, None)) @ directions.T


def _centres(state: State) -> Cloud:
    """(clusters, d), at most d + 1: corners of a regular simplex around the origin, by Helmert's rows, as in the browser's shape.js.

    A basis from a factorisation would be arbitrary, as the simplex spreads equally in all of its directions.
    """
    count = min(state.clusters, state.d + 1)
    centres = np.zeros((count, state.d))
    for k in range(1, count):  # dimension k − 1 separates cluster k from the clusters before it
        unit = state.separation / np.sqrt(2 * k * (k + 1))
        centres[:k, k - 1], centres[k, k - 1] = unit, -k * unit
    return centres


def _rotation(state: State, seed: int) -> Cloud:
    """None at 0; otherwise a rotation that mixes all dimensions. Lessons do not need intermediate values, which count as 1."""
    if not state.rotation:
        return np.eye(state.d)
    rotation: Cloud = np.linalg.qr(np.random.default_rng([seed, 7]).standard_normal((state.d, state.d)))[0]
    return rotation
