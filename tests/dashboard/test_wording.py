"""Numbers in words."""

from __future__ import annotations

import math

import pytest

from dashboard import wording


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [
        (0.123456, 4, "0.1235"),
        (-0.5, 4, "−0.5"),
        (1162.3, 3, "1,162"),
        (9999.96, 4, "10,000"),
        (-12345.6, 4, "−12,346"),
        (999.4, 3, "999"),
        (-1234, 4, "−1,234"),
        (3.2e-7, 3, "3.2e−07"),
        (2e20, 3, "2e+20"),
        (None, 4, "undefined"),
        (math.nan, 4, "nan"),
        (math.inf, 4, "inf"),
        (True, 4, "True"),
    ],
)
def test_numbers_are_read_at_a_glance(value, digits, words):
    assert wording.number(value, digits) == words
