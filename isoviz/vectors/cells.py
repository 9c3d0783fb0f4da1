"""Vectors that a cell of a text file holds: as JSON, as numpy or PyTorch print them, with bars, commas or blanks, or as base64."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import shortened

_PRINTED: Final = re.compile(r"\s*(?:(?:torch|np|numpy)\.)?(?:tensor|array)\(")
_SETTINGS: Final = re.compile(r",\s*\w+\s*=[^,\]]*")
_BRACKETS: Final = str.maketrans("[](){}", "      ")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{10,}={0,2}")
_FEWEST: Final = 4
"""Numbers without brackets from which a cell is a vector; 48.1,11.6 is a place."""
_PLAUSIBLE: Final = (1e-12, 1e6)
"""Magnitudes of numbers in base64; other text decodes to numbers of any magnitude."""
_FEWEST_DECODED: Final = 16


def are_vectors(texts: Sequence[str]) -> bool:
    """Whether cells look like vectors, readable or not, by the first; in base64, by all."""
    first = texts[0] if texts else ""
    numbers = _parts(first)
    count = sum(map(_is_number, numbers))
    if first.lstrip().startswith("[") or _PRINTED.match(first):
        return 2 * count > len(numbers)
    if len(numbers) >= _FEWEST:
        return count == len(numbers) and any(sign in first for sign in ".eE")
    sizes = [0 if (decoded := _decoded(text)) is None else len(decoded) for text in texts]
    return min(sizes, default=0) > 0 and sum(sizes) >= _FEWEST_DECODED


def numbers_in(text: str) -> NDArray[np.float64] | None:
    """The vector of a cell; None if it is none."""
    if text.lstrip().startswith("["):
        try:
            values = np.array(json.loads(text), dtype=np.float64)
            return values if values.ndim == 1 else None
        except (TypeError, ValueError, RecursionError, OverflowError):
            pass
    if text.count("[") > 1 or text.count("[") != text.count("]"):
        return None
    try:
        return np.array(_parts(text), dtype=np.float64)
    except ValueError:
        return _decoded(text)


def problem_of(text: str) -> str:
    """Why a cell cannot be read, for an error."""
    if "..." in text:
        return f"'{shortened(text, 40)}': the numbers are missing where numpy wrote '...'"
    if re.fullmatch(r"\s*\[\s*\[.*\]\s*\]\s*", text, re.DOTALL):
        return "it holds lists of lists"
    return f"'{shortened(text, 30)}' is not a list of numbers"


def _parts(text: str) -> list[str]:
    """What stands between separators: bars, else semicolons, commas, blanks."""
    printed = _PRINTED.sub("", text, count=1)
    inner = (_SETTINGS.sub("", printed) if printed != text else text).translate(_BRACKETS).strip(" \n\t,;|")
    separator = next((sign for sign in "|;," if sign in inner), None)
    parts = [part.strip() for part in inner.split(separator)]
    return [part.replace(",", ".") for part in parts] if separator in ("|", ";") else parts


def _is_number(part: str) -> bool:
    try:
        float(part)
    except ValueError:
        return part == "..."
    return True


def _decoded(text: str) -> NDArray[np.float64] | None:
    if not _BASE64.fullmatch(text):
        return None
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float64)
    except (binascii.Error, ValueError):
        return None
    sizes = np.abs(values[values != 0])
    return values if ((sizes > _PLAUSIBLE[0]) & (sizes < _PLAUSIBLE[1])).all() else None
