"""The decision whether vectors collapsed, after each batch of a training, with one false-alarm rate."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.statistics.betting import MeanAbove

Kind = Literal["alike", "few"]
KINDS: Final[tuple[Kind, ...]] = ("alike", "few")
MOST_PAIRS: Final = 0.9
"""Share of pairs above the cosine limit from which vectors count as alike."""


@dataclass(frozen=True)
class Alarm:
    """A collapse.

    Attributes:
        kind: `alike` or `few`.
        step: optimiser step of the decision.
        estimate: in the batch of the decision, the share of pairs above the cosine limit, or the number of directions.
        evidence: the e-value that crossed the limit.
        false_alarm_rate: the largest probability of any false alarm in the whole training.
    """

    kind: Kind
    step: int
    estimate: float
    evidence: float
    false_alarm_rate: float

    @property
    def sentence(self) -> str:
        if self.kind == "alike":
            return f"almost all vectors point the same way ({self.estimate:.0%} of the pairs in this batch)"
        return f"the vectors differ in about {self.estimate:.1f} directions only"

    def __str__(self) -> str:
        rate = f"false-alarm rate over the training at most {self.false_alarm_rate:.3g}"
        return f"collapse at step {self.step}: {self.sentence}; {rate}"


class CollapseTest:
    """Decides after each batch whether vectors collapsed, with one false-alarm rate for the whole training.

    Healthy means, at every step, of the population from which the batch is drawn:
        alike: at most 90 % of pairs of vectors have a cosine above `alike`; two zero vectors count as alike, a zero vector and
            another as different;
        few: 1/E[cos²(a, b)] ≥ `few`, where a and b are differences of two independent pairs of vectors. This is the
            participation ratio of the covariance of the normalised differences, so scale and mean do not matter. About 1 is
            one direction.
    Each kind gets an equal share of the rate (`isoviz.statistics.betting`). Pairs and quadruples of one batch are disjoint and
    drawn at random, so that they are independent if the rows are. Any batch size is valid; larger ones decide sooner.

    Args:
        rate: probability of any false alarm, in (0, 1).
        alike: a cosine in (0, 1).
        few: number of directions, above 1.
        kinds: the kinds to decide.
        seed: of the pairs.

    Raises:
        InputError: (a ValueError) a value outside its range, named in `field`.
    """

    def __init__(
        self,
        rate: float = 0.01,
        *,
        alike: float = 0.98,
        few: float = 4.0,
        kinds: Collection[str] = KINDS,
        seed: int = 0,
    ) -> None:
        if not 0 < rate < 1:
            raise InputError(f"false_alarm_rate must lie between 0 and 1, got {rate}", field="false_alarm_rate")
        if not 0 < alike < 1:
            raise InputError(f"alike must be a cosine between 0 and 1, got {alike}", field="alike")
        if not few > 1 or not math.isfinite(few):
            raise InputError(f"few must be a number of directions above 1, got {few}", field="few")
        if isinstance(kinds, str) or not kinds or not set(kinds) <= set(KINDS):
            raise InputError(f"kinds must be some of {', '.join(KINDS)}, got {kinds!r}", field="kinds")
        self.rate, self.alike = rate, alike
        limits = {"alike": MOST_PAIRS, "few": 1 / few}
        self.tests: dict[Kind, MeanAbove] = {kind: MeanAbove(limits[kind]) for kind in KINDS if kind in kinds}
        self._generator = np.random.default_rng(seed)

    def look(self, vectors: NDArray[Any], step: int) -> Alarm | None:
        """Decide after a batch of finite vectors (n, d); needs n ≥ 2 for `alike`, n ≥ 4 for `few`."""
        biggest = float(np.abs(vectors).max(initial=0.0)) or 1.0
        x = self._generator.permutation(vectors).astype(np.float64) / biggest  # the products cannot overflow
        half, quarter = len(x) // 2, len(x) // 4  # of a last batch of three rows, 1 and 0
        present = np.asarray(x.any(axis=1))
        left = present[:half].astype(int) + present[half : 2 * half]  # of each pair, vectors that are not zero
        cosines = np.concatenate([_cosines(x[:half], x[half : 2 * half]), (left[left < 2] == 0).astype(np.float64)])
        first, second, third, fourth = (x[part * quarter : (part + 1) * quarter] for part in range(4))
        between = _cosines(first - second, third - fourth)
        seen: dict[Kind, NDArray[np.float64]] = {
            "alike": (cosines > self.alike).astype(np.float64),
            "few": np.minimum(between**2, 1.0),
        }
        found = [kind for kind, test in self.tests.items() if test.update(seen[kind]) >= len(self.tests) / self.rate]
        if not found:
            return None
        kind = found[0]
        share = float(seen[kind].mean())
        estimate = share if kind == "alike" else 1 / share
        return Alarm(kind, step, estimate, self.tests[kind].evidence, self.rate)


def _cosines(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosines of the rows, (k,); rows with a zero vector are left out."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    return np.asarray(products[lengths > 0] / lengths[lengths > 0])
