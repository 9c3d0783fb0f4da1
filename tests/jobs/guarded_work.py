"""Functions that the tests of guarded calls run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from isoviz.errors import DataError


@dataclass(frozen=True)
class Told:
    """An answer."""

    text: str
    counts: dict[str, int]


def tell(text: str, counts: dict[str, int]) -> Told:
    print("this is no answer")
    return Told(text, counts)


def whose() -> int:
    return os.getpid()


def refuse(text: str) -> None:
    raise DataError(f"data: {text}", field="data", advice="Mend it.")


def break_down() -> None:
    raise ZeroDivisionError("a bug")


def take(gigabytes: float) -> int:
    return len(b"\x01" * int(gigabytes * 2**30))


def die() -> None:
    os.kill(os.getpid(), 9)


def wait(mark: Path, seconds: float) -> None:
    mark.write_text(str(os.getpid()))
    time.sleep(seconds)
