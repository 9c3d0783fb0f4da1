"""Near misses: sentences in which one name, number or negation was changed. How high is their cosine with the original?

An encoder that reads topics rather than claims gives them nearly the cosine of a copy, so that a threshold lets them through.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz import demo

KINDS: Final = ("name", "number", "negation")
_CHANGE: Final = re.compile(r"\{(.+?)\|(.+?)\}")
_NEGATION: Final = re.compile(r"\b(not|cannot)\b")


@functools.cache
def texts() -> tuple[str, ...]:
    """Of each English sentence of the bundled set the original and, in the order of `KINDS`, its three changed forms."""
    lines = (demo.FOLDER / "near_misses.txt").read_text(encoding="utf-8").splitlines()
    return tuple(text for line in lines if not line.startswith("#") for text in _forms(line))


def _forms(line: str) -> tuple[str, ...]:
    original = _CHANGE.sub(r"\1", line)
    changed = {}
    for change in _CHANGE.finditer(line):
        kind = "negation" if _NEGATION.search(change[2]) else "number" if change[2][0].isdigit() else "name"
        only = line[: change.start()] + change[2] + line[change.end() :]
        changed[kind] = _CHANGE.sub(r"\1", only)
    return (original, *(changed[kind] for kind in KINDS))


@dataclass(frozen=True)
class NearMisses:
    """How near an encoder holds changed sentences to their originals.

    Attributes:
        cosines: (sentences, 3), in the order of `KINDS`.
    """

    cosines: NDArray[np.float64]

    def above(self, cosine: float) -> dict[str, Any]:
        """The share of near misses above a cosine, in all (`share`, with a 95 % interval `low` to `high`) and by kind.

        The changed forms of a sentence are not independent, so the interval (Wilson's) counts sentences.
        """
        from scipy.stats import binomtest

        higher = self.cosines > cosine
        count = len(higher)
        ends = binomtest(round(float(higher.mean()) * count), count).proportion_ci(method="wilson")
        by_kind = dict(zip(KINDS, higher.mean(axis=0).tolist(), strict=True))
        return {
            "cosine": cosine,
            "share": float(higher.mean()),
            "low": float(ends.low),
            "high": float(ends.high),
            "by_kind": by_kind,
        }

    def sentence(self, cosine: float) -> str:
        """`above` in words."""
        found = self.above(cosine)
        kinds = ", ".join(f"{name} {100 * share:.0f} %" for name, share in found["by_kind"].items())
        return (
            f"Of {self.cosines.size} English sentences with one name, number or negation changed, {100 * found['share']:.0f} % "
            f"({100 * found['low']:.0f} to {100 * found['high']:.0f}) have a cosine above {cosine:.3g} with the original: {kinds}."
        )


def near_misses(points: ArrayLike) -> NearMisses:
    """Near misses of an encoder.

    Args:
        points: (n, d), the vectors of `texts()`, in their order.
    """
    vectors = np.asarray(points, dtype=np.float64).reshape(-1, 1 + len(KINDS), np.shape(points)[1])
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=2, keepdims=True), np.finfo(np.float64).tiny)
    return NearMisses(np.einsum("nd,nkd->nk", unit[:, 0], unit[:, 1:]))
