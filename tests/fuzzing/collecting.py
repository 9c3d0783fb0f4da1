"""Draw many examples and collect every fault instead of stopping at the first."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st


@dataclass
class Outcome:
    """The outcome of many examples.

    Attributes:
        answers: result of the check → count.
        faults: location of the fault → the first example and its traceback.
    """

    answers: Counter[object] = field(default_factory=Counter)
    faults: dict[str, tuple[object, str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{sum(self.answers.values()) + sum(self.counts.values())} inputs: {dict(self.answers)}"]
        for place, (example, trace) in self.faults.items():
            lines.append(f"--- {self.counts[place]} times: {place}\n{str(example)[:600]!r}\n{trace[-1500:]}")
        return "\n".join(lines)


def collect(strategy: st.SearchStrategy[Any], check: Callable[[Any], object], count: int, number: int = 0) -> Outcome:
    """Check `count` examples, the same ones for the same `number`."""
    outcome = Outcome()

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def attempt(example: Any) -> None:
        try:
            outcome.answers[check(example)] += 1
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{type(error).__name__} at " + " < ".join(
                f"{frame.filename}:{frame.lineno}" for frame in frames[-1:-4:-1]
            )
            if isinstance(error, AssertionError):
                place = f"{type(error).__name__}: {str(error)[:70]}"
            outcome.counts[place] += 1
            outcome.faults.setdefault(place, (example, traceback.format_exc()))

    attempt()
    return outcome
