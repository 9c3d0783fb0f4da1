"""Mean and deviation by hand."""

import math

import pytest

from isoviz.statistics import mean_sd


@pytest.mark.parametrize(
    ("values", "mean", "sd"),
    [
        ([], None, None),
        ([None, math.nan], None, None),
        ([0.5], 0.5, None),  # one value has no deviation, not one of 0
        ([0.25, None, 0.75], 0.5, math.sqrt((0.0625 + 0.0625) / 1)),
        ([1, 2, 3, 6], 3.0, math.sqrt((4 + 1 + 0 + 9) / 3)),
    ],
)
def test_mean_and_sample_deviation(values, mean, sd):
    assert mean_sd(values) == (mean, pytest.approx(sd) if sd is not None else None)
