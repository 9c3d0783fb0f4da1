"""Spare processes that belong to one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isoviz.exploring import starting


@pytest.fixture
def own_spares(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No spare and no beginning of another test counts here: the end of its work is noticed seconds later. Memory is never short."""
    monkeypatch.setattr(starting, "_SPARES", starting._Spares())
    monkeypatch.setattr(starting, "MEMORY", 0)
    yield
    starting.close()
