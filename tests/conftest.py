"""Fixtures of the whole suite: no test reaches the user's own store, the network, or another test's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiny


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> tiny.TinyModels:
    """Small random encoders of every supported family, in directories like those of a download."""
    return tiny.TinyModels(tmp_path_factory.mktemp("models"))


@pytest.fixture
def cola(tmp_path: Path) -> Path:
    """A folder with a small learnable task in CoLA's columns."""
    return tiny.write_cola(tmp_path / "cola")
