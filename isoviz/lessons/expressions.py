"""The expression language of claims: `mean_cosine@3 > 0.9`, `abs(isoscore@3 - isoscore@0) < 0.01`.

`name@k` is the number `name` after step k, `name@0` its value at the start of the lesson; `true.name@k` is its value for the
population from which the points are drawn. A claim is parsed here, once, into JSON lists; the browser evaluates them.

    number    0.9                        reference  ["at", name, k]
    operation ["+", left, right]         absolute   ["abs", value]
    claim     [["<", left, right], [">", left, right], …]: all must hold
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Tree: TypeAlias = "float | list[Any]"
"""A parsed expression."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e-?\d+)?)|(?P<reference>[a-z][a-z0-9_.]*@\d+)|(?P<sign>abs\(|[-+*/()<>]))"
)
_LOOSE, _TIGHT = ("+", "-"), ("*", "/")


class MalformedError(ValueError):
    """An invalid expression; the message is one sentence."""


def parse_claim(text: str) -> list[Any]:
    """Parse `a < b`, `a > b` or a chain such as `0.4 < isoscore@2 < 0.8` into a list of comparisons that must all hold.

    Raises:
        MalformedError: the text is not a comparison of expressions.
    """
    sides = re.split(r"([<>])", text)
    if len(sides) < 3:
        raise MalformedError(f"a claim compares values with < or >, got “{text}”")
    values = [parse(side) for side in sides[::2]]
    return [[sign, left, right] for sign, left, right in zip(sides[1::2], values[:-1], values[1:], strict=True)]


def parse(text: str) -> Tree:
    """Parse a value into lists; `MalformedError` if it is invalid."""
    tokens = _tokens(text)
    tree, end = _sum(tokens, 0)
    if end != len(tokens):
        raise MalformedError(f"cannot read “{tokens[end]}” in “{text.strip()}”")
    return tree


def references(tree: Tree) -> Iterator[tuple[str, int]]:
    """All (name, step) references in an expression or a claim."""
    if isinstance(tree, list):
        if tree[0] == "at":
            yield tree[1], tree[2]
        else:
            for part in tree:
                yield from references(part)


def evaluate(tree: Tree, value_at: Callable[[str, int], float]) -> float:
    """The value of an expression; `value_at(name, step)` looks up numbers. A division by 0 gives nan."""
    if not isinstance(tree, list):
        return tree
    if tree[0] == "at":
        return value_at(tree[1], tree[2])
    if tree[0] == "abs":
        return abs(evaluate(tree[1], value_at))
    left, right = evaluate(tree[1], value_at), evaluate(tree[2], value_at)
    match tree[0]:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return left / right if right else float("nan")


def holds(claim: list[Any], value_at: Callable[[str, int], float]) -> bool:
    """Whether all comparisons of a parsed claim are true; a comparison with an undefined side is false."""
    for sign, *sides in claim:
        left, right = (evaluate(side, value_at) for side in sides)
        if not (left < right if sign == "<" else left > right):
            return False
    return True


def _tokens(text: str) -> list[str]:
    tokens, at, text = [], 0, text.replace("−", "-").rstrip()
    while at < len(text):
        matched = _TOKEN.match(text, at)
        if matched is None:
            raise MalformedError(
                f"cannot read “{text[at:].strip()}”; allowed are numbers, name@step, + - * / and abs( )"
            )
        tokens.append(matched[0].strip())
        at = matched.end()
    if not tokens:
        raise MalformedError("a value is missing")
    return tokens


def _sum(tokens: list[str], at: int) -> tuple[Tree, int]:
    return _chain(tokens, at, _LOOSE, lambda t, i: _chain(t, i, _TIGHT, _atom))


def _chain(
    tokens: list[str], at: int, signs: tuple[str, ...], part: Callable[[list[str], int], tuple[Tree, int]]
) -> tuple[Tree, int]:
    tree, at = part(tokens, at)
    while at < len(tokens) and tokens[at] in signs:
        right, after = part(tokens, at + 1)
        tree, at = [tokens[at], tree, right], after
    return tree, at


def _atom(tokens: list[str], at: int) -> tuple[Tree, int]:
    if at >= len(tokens):
        raise MalformedError("a value is missing at the end")
    token = tokens[at]
    if token == "-":
        tree, after = _atom(tokens, at + 1)
        return ["-", 0.0, tree], after
    if token in ("(", "abs("):
        tree, after = _sum(tokens, at + 1)
        if after >= len(tokens) or tokens[after] != ")":
            raise MalformedError("a closing ) is missing")
        return (["abs", tree] if token == "abs(" else tree), after + 1
    if "@" in token:
        name, _, step = token.rpartition("@")
        return ["at", name, int(step)], at + 1
    if token[0].isdigit():
        return float(token), at + 1
    raise MalformedError(f"a value is missing before “{token}”")
