"""The expression language of claims: `mean_cosine@3 > 0.9`, `abs(isoscore@3 - isoscore@0) < 0.01`.

`name@k` is the number `name` after step k, `name@0` its value at the start of the lesson; `true.name@k` is its value for the
population from which the points are drawn. A claim is parsed here, once, into JSON lists; the browser evaluates them.

    number    0.9                        reference  ["at", name, k]
    operation ["+", left, right]         absolute   ["abs", value]
    claim     [["<", left, right], [">", left, right], …]: all must hold
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

Tree: TypeAlias = "float | list[Any]"
"""A parsed expression."""

_REFERENCE: Final = re.compile(r"([a-z][a-z0-9_.]*)@(\d+)")
_ARITHMETIC: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_SIGNS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<", ast.Gt: ">"
}  # fmt: skip


def parse_claim(text: str) -> list[Any]:
    """Parse `a < b`, `a > b` or a chain such as `0.4 < isoscore@2 < 0.8` into a list of comparisons that must all hold.

    Raises:
        ValueError: the text is not a comparison of expressions.
    """
    claim = _parsed(text) if set("<>") & set(text) else None
    if not isinstance(claim, ast.Compare) or not all(type(sign) in _SIGNS for sign in claim.ops):
        raise ValueError(f"a claim compares values with < or >, got “{text}”")
    values = [_tree(side) for side in (claim.left, *claim.comparators)]
    signs = [_SIGNS[type(sign)] for sign in claim.ops]
    return [[sign, left, right] for sign, left, right in zip(signs, values[:-1], values[1:], strict=True)]


def _parsed(text: str) -> ast.expr:
    """Python's own syntax tree, in which a reference is an item: `"isoscore"[3]`."""
    python = _REFERENCE.sub(r"'\1'[\2]", text.replace("−", "-").strip())
    try:
        return ast.parse(python, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _unreadable(text) from None


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Subscript(value=ast.Constant(value=str() as name), slice=ast.Constant(value=int() as step)):
            return ["at", name, step]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ["-", 0.0, _tree(operand)]
        case ast.Call(func=ast.Name(id="abs"), args=[value], keywords=[]):
            return ["abs", _tree(value)]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            return [_SIGNS[type(sign)], _tree(left), _tree(right)]
    raise _unreadable(ast.unparse(node))


def _unreadable(text: str) -> ValueError:
    return ValueError(f"cannot read “{text.strip()}”; allowed are numbers, name@step, + - * / and abs( )")


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
    if tree[0] == "/" and not right:
        return float("nan")
    return _ARITHMETIC[tree[0]](left, right)


def holds(claim: list[Any], value_at: Callable[[str, int], float]) -> bool:
    """Whether all comparisons of a parsed claim are true; a comparison with an undefined side is false."""
    for sign, *sides in claim:
        left, right = (evaluate(side, value_at) for side in sides)
        if not (left < right if sign == "<" else left > right):
            return False
    return True
