"""Measures every change of a cloud for "Which measure sees what": `python -m factory.record_responses`.

Writes isoviz/lessons/responses.json: the clouds, and the value of each of this project's measures on each of them. It takes a few
seconds, so it always computes everything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isoviz import metrics, reference
from isoviz.lessons import responses
from isoviz.lessons.checking import Cloud, covariance, estimates
from isoviz.metrics.protocol import Metric

PATH = Path(responses.__file__).with_name("responses.json")


def main() -> int:
    """0 after the file is written."""
    ours = reference.of_this_project(measures())
    parts: dict[str, Any] = {"plain": {}, **{change.slug: change.part for change in responses.CHANGES}}
    rows = {name: [values(part, seed, ours) for seed in responses.SEEDS] for name, part in parts.items()}
    record = {
        "clouds": {"plain": responses.PLAIN, "changes": {name: dict(part) for name, part in parts.items() if part}},
        "seeds": responses.SEEDS,
        "of_moments": sorted(set.intersection(*(depends_on_moments(seed, ours) for seed in responses.SEEDS))),
        "values": {m.slug: {name: [row[m.slug] for row in of_draws] for name, of_draws in rows.items()} for m in ours},
    }
    PATH.write_text(_text(record) + "\n", encoding="utf-8")
    print(f"written: isoviz/lessons/{PATH.name}, {len(ours)} measures")
    return 0


def measures() -> list[Metric]:
    """The metrics of the table: one number of a single cloud, or of a matrix with its points as rows."""
    return [metric for metric in metrics.catalogue().values() if metric.in_runs]


def values(part: Mapping[str, Any], seed: int, which: Sequence[Metric]) -> dict[str, float | None]:
    """slug → value of a drawn cloud, rounded; None if undefined or if it needs the true covariance of transformed points."""
    cloud, state = responses.drawn(part, seed)
    inputs = {} if state.transforms else {"shrinkage_cov": covariance(state, seed), "zeta": state.zeta}
    by_slug = estimates(cloud, which, inputs)
    return {metric.slug: _rounded(by_slug.get(metric.slug, float("nan"))) for metric in which}


def _rounded(value: float) -> float | None:
    return float(f"{value:.{responses.DIGITS}g}") if np.isfinite(value) else None


def depends_on_moments(seed: int, which: Sequence[Metric]) -> set[str]:
    """The measures with equal values on Gaussian and heavy-tailed points that were given exactly the same mean and covariance."""
    gaussian, heavy = (
        estimates(
            _with_exact_moments(responses.drawn(part, seed)[0]),
            which,
            {"shrinkage_cov": np.eye(responses.PLAIN["d"]), "zeta": 0.2},
        )
        for part in ({}, {"tails": 3})
    )
    return {slug for slug, value in gaussian.items() if np.isclose(value, heavy[slug], rtol=1e-9, atol=1e-9)}


def _with_exact_moments(cloud: Cloud) -> Cloud:
    """The cloud whitened: mean 0 and covariance I, to rounding."""
    left, _, right = np.linalg.svd(cloud - cloud.mean(axis=0), full_matrices=False)
    whitened: Cloud = left @ right * np.sqrt(len(cloud) - 1)
    return whitened


def _text(value: Any, depth: int = 0) -> str:
    """JSON with one line per list."""
    if not isinstance(value, dict) or depth > 2:
        return json.dumps(value)
    space = " " * (depth + 1)
    entries = ",\n".join(f"{space}{json.dumps(key)}: {_text(entry, depth + 1)}" for key, entry in value.items())
    return f"{{\n{entries}\n{' ' * depth}}}"


if __name__ == "__main__":
    raise SystemExit(main())
