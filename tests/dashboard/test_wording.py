"""Numbers in words."""

from __future__ import annotations

import math

import pytest

from dashboard.shared import wording


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [
        (0.123456, 4, "0.1235"),
        (1162.3, 3, "1,162"),
        (9999.96, 4, "10,000"),
        (0.000922, 4, "9.22·10⁻⁴"),
        (-1.37e-05, 4, "−1.37·10⁻⁵"),
        (2e20, 3, "2·10²⁰"),
        (1e-3, 4, "0.001"),
        (0.99993, 3, "0.99993"),
        (-0.99999951, 4, "−0.9999995"),
        (1 - 1e-13, 3, "1"),
        (0.00099999, 2, "1·10⁻³"),
        (None, 4, "undefined"),
        (math.nan, 4, "undefined"),
        (math.inf, 4, "inf"),
        (True, 4, "True"),
    ],
)
def test_numbers_are_read_at_a_glance(value, digits, words):
    assert wording.number(value, digits) == words


@pytest.mark.parametrize(
    "name",
    [
        "https://evil.example/x",
        "HTTP://evil.example",
        "www.evil.example",
        "joe@evil.example",
        ":material/lock:",
        "a:streamlit:",
    ],
)
def test_addresses_and_icons_in_names_are_kept_apart(name: str) -> None:
    text = wording.plain(name)
    assert text.count(":gray[]") == 1 and wording.unmarked(text) == name
    first, _, second = text.replace("\\", "").partition(":gray[]")
    assert first and second and first + second == name
