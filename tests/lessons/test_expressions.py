"""The language of claims, against Python's own arithmetic."""

from __future__ import annotations

import math

import pytest

from isoviz.lessons.expressions import evaluate, holds, parse_claim

VALUES = {("isoscore", 0): 0.75, ("isoscore", 1): 0.5, ("true.isoscore", 1): 1.0}


def value_at(name: str, step: int) -> float:
    return VALUES.get((name, step), math.nan)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("1 - 2 - 3", -4),
        ("12 / 3 / 2", 2),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-2 + 3", 1),
        ("abs(1 - 3) * 2", 4),
        ("1e-3 * 1000", 1),
        ("isoscore@0 - isoscore@1", 0.25),
        ("true.isoscore@1 / isoscore@1", 2),
        ("−0.5", -0.5),
    ],
)
def test_values(text: str, value: float) -> None:
    ((_, _, tree),) = parse_claim(f"0 < {text}")
    assert evaluate(tree, value_at) == value


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("isoscore@0 > isoscore@1", True),
        ("isoscore@0 < isoscore@1", False),
        ("0.4 < isoscore@1 < 0.6", True),
        ("unknown@0 > 0", False),
        ("1 / 0 > 0", False),
    ],
)
def test_claims(text: str, true: bool) -> None:
    assert holds(parse_claim(text), value_at) is true


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("isoscore@1", "compares values with < or >"),
        ("isoscore > 1", "cannot read “isoscore”"),
        ("isoscore@1 >", "cannot read “isoscore@1 >”"),
        ("2 ** 3 > 1", r"cannot read “2 \*\* 3”"),
        ("1 == 1", "compares values with < or >"),
        ("True > 0", "cannot read “True”"),
        ("(" * 300 + "1" + ")" * 300 + " > 0", "cannot read"),
        ("__import__('os') > 1", "cannot read"),
    ],
)
def test_invalid_claims(text: str, message: str) -> None:
    with pytest.raises(match=message):
        parse_claim(text)
