"""Numbers and sentences as text, the same on screens, in files and on the command line."""

from __future__ import annotations

import math
from typing import Any

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def sentence(text: str) -> str:
    """The text with a capital, unless it begins with a symbol, and one full stop; nothing for nothing."""
    first = text[:1].upper() if text[:1].isascii() else text[:1]
    return f"{first}{text[1:].rstrip('.')}." if text else ""


def number(value: object, digits: int = 4) -> str:
    """A measured value with significant digits: `0.25`, `12,346`, `9.22·10⁻⁴` below 0.001; `undefined` for None and NaN.

    Integers, and values that round to more digits, are written in full.
    """
    if value is None or value != value:
        return "undefined"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    size = abs(value)
    if math.isfinite(value) and 10**digits <= round(size) < 10**15:
        return number(round(value))
    if math.isinf(value) or size == 0 or 0.001 <= size < 10**digits:
        text = f"{value:.{digits}g}"
        return _told_from_one(value, text).replace("-", "−")
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}·10{str(int(exponent)).translate(_RAISED)}".replace("-", "−")


def decimals(value: Any, places: int = 3, *, sign: bool = False) -> str:
    """A measured value with a fixed number of decimals and a true minus sign, none before a zero; `undefined` for None and NaN."""
    return "undefined" if value is None or value != value else fixed(value, places, sign=sign).replace("-", "−")


def fixed(value: float, places: int, *, sign: bool = False) -> str:
    """A number with `places` decimals, or with as many as it takes to tell it from ±1: 0.99993, not 1.000."""
    text = f"{value:{'+' if sign else ''}z.{places}f}"
    return _told_from_one(value, text, "+" if sign else "")


def _told_from_one(value: float, text: str, sign: str = "") -> str:
    """A number below 1 whose text says 1, up to its first digit that is not 9; if it differs by rounding only, its text."""
    distance = 1 - abs(value)
    if distance <= 1e-9 or abs(float(text)) < 1:
        return text
    return f"{value:{sign}.{math.ceil(-math.log10(distance) - 1e-9)}f}"
