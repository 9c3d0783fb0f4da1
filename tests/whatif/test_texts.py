"""Texts through an encoder: one of the hub is downloaded before its modules are looked for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.models import sources
from isoviz.models.extract import encode
from isoviz.whatif import texts
from isoviz.whatif.texts import TextsRequest
from tests.models.sentence_folders import TEXTS, make
from tests.tiny import TinyModels


def test_the_modules_of_a_hub_model_are_read_on_first_use(
    tmp_path: Path, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "model", tiny_models("bert"), dense=8)
    local = sources.resolve(str(folder))
    expected = encode(str(folder), TEXTS)
    remote = dataclasses.replace(
        local, name="lab/dense", kind="hub", location="lab/dense", fingerprint="unfetched", revision="a" * 40
    )
    fetched = dataclasses.replace(local, name="lab/dense", kind="cached", revision="a" * 40)
    monkeypatch.setattr(sources, "resolve", lambda model: remote)
    monkeypatch.setattr(sources, "fetch", lambda source, tell=None: fetched)
    pairs = pd.DataFrame({"left": ["0", "1", "2"], "right": ["1", "2", "0"], "score": [1.0, 2.0, 3.0]})
    stored = vectors.from_texts(TEXTS)
    stored = dataclasses.replace(
        stored,
        columns=stored.columns.assign(id=[str(row) for row in range(stored.n)]),
        pairs=pairs,
        relation="similarity",
    )
    request = TextsRequest(vectors.keep(stored), "lab/dense", dtype="bfloat16")
    before = request.as_json()
    facts, arrays = texts.compute(request, lambda *_: None)
    assert facts["facts"]["pooling"] == "sentence" and facts["relation"] == "similarity" and "pairs" in arrays
    np.testing.assert_allclose(arrays["points"], expected, atol=0.03)
    assert np.abs(arrays["points"] - expected).max() > 1e-5 and "bfloat16" in request.as_json().values()
    monkeypatch.setattr(sources, "resolve", lambda model: fetched)
    assert request.as_json() == before
    monkeypatch.setattr(sources, "resolve", lambda model: dataclasses.replace(remote, revision="b" * 40))
    assert request.as_json() != before
