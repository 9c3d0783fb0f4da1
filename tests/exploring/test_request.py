"""The key of a view: it changes with content and settings, and with nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from isoviz.errors import InputError
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.models import sources
from tests.tiny import TinyModels, write_cola


def key(request: ViewRequest) -> str:
    return key_of(request, sources.resolve(request.model), rows_of(request.task, request.data))


@pytest.fixture
def model(tiny_models: TinyModels, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(tiny_models("bert"), tmp_path / "model"))


@pytest.fixture
def request_(model: Path, cola: Path) -> ViewRequest:
    return ViewRequest(str(model), "glue/cola", str(cola), max_rows=8)


def test_every_setting_is_in_the_key(request_: ViewRequest) -> None:
    changed = [
        replace(request_, split="train"),
        replace(request_, max_rows=9),
        replace(request_, max_length=64),
        replace(request_, seed=1),
    ]
    assert len({key(request_), *map(key, changed)}) == 5


def test_content_is_in_the_key(request_: ViewRequest, model: Path, tmp_path: Path) -> None:
    keys = [key(request_), key(replace(request_, data=str(write_cola(tmp_path / "more", validation=34))))]
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        with (model / name).open("ab") as file:
            file.write(b" ")
        keys.append(key(request_))
    assert len(set(keys)) == 5


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"direction": "de-en"}, "direction"),
        ({"split": "test"}, "split"),
        ({"max_rows": 1}, "max_rows"),
        ({"max_length": 0}, "max_length"),
        ({"task": "x"}, "task"),
    ],
)
def test_an_invalid_value_names_its_field(change: dict[str, object], field: str, request_: ViewRequest) -> None:
    with pytest.raises(InputError, match="allowed|at least|does not translate") as caught:
        replace(request_, **change).check()  # type: ignore[arg-type]
    assert caught.value.field == field
