"""The pytest fixture `isoviz_check`. Every pytest run imports this file, so it imports nothing heavy before it is used."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from isoviz.watch.drift import Check


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("isoviz").addoption(
        "--isoviz-update", action="store_true", help="isoviz_check: save baselines instead of comparing with them"
    )


@pytest.fixture
def isoviz_check(request: pytest.FixtureRequest) -> Callable[..., Check | None]:
    """`isoviz_check(vectors, "baselines/encoder.json")` fails the test with one sentence if a measure changed beyond its tolerance.

    Vectors are an array (n, d) or a file; the baseline's path is relative to pytest's root folder. `fail_on`, `ids` and `same_rows`
    are those of `isoviz.check`; `strict` fails also where a change cannot be excluded. With `--isoviz-update` it saves the baseline.
    """

    def check(
        vectors: Any,
        baseline: str | os.PathLike[str],
        *,
        fail_on: Mapping[str, float | None] | None = None,
        ids: Iterable[Any] | None = None,
        same_rows: bool = False,
        strict: bool = False,
    ) -> Check | None:
        from isoviz.errors import InputError
        from isoviz.watch import drift

        path = request.config.rootpath / baseline
        try:
            points, found = drift.read(vectors)[:2] if isinstance(vectors, (str, os.PathLike)) else (vectors, None)
            if request.config.getoption("--isoviz-update"):
                path.parent.mkdir(parents=True, exist_ok=True)
                drift.baseline(points, ids=found if ids is None else ids).write(path)
                return None
            if not path.exists():
                pytest.fail(f"no baseline '{path}'; save it with --isoviz-update", pytrace=False)
            before = drift.Baseline.read(path)
            if ids is None and not same_rows and before.common(found or ()):
                ids = found
            result = drift.check(points, before, fail_on=fail_on, ids=ids, same_rows=same_rows)
        except InputError as error:
            pytest.fail(str(error), pytrace=False)
        if not result.ok(strict):
            pytest.fail(result.sentence, pytrace=False)
        for note in result.notes():
            warnings.warn(note, stacklevel=2)
        return result

    return check
