"""Own texts become vectors in a job."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import Job, Recent
from isoviz.jobs.progress import ProgressFile
from isoviz.models import extract, sources
from isoviz.vectors import jobs

LINES = ["the cat sleeps", "a dog barks at night", "it rains"]


def _job(folder: Path, texts: str) -> Job:
    request = jobs.request(texts, "demo/tiny-bert", sources.resolve("demo/tiny-bert").fingerprint, pooling="mean")
    key = queue.content_key(jobs.ENCODING, request)
    folder.mkdir()
    return Job(jobs.ENCODING, key, folder, request, ProgressFile(folder), Recent(1))


def test_texts_become_a_set_with_their_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": LINES, "label": ["a", "b", "a"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    job = _job(tmp_path / "job", vectors.keep(vectors.read_texts(tmp_path / "a.csv")))
    jobs._encode(job)
    found = vectors.load(job.key)
    np.testing.assert_allclose(found.points, extract.encode("demo/tiny-bert", LINES, pooling="mean"), atol=1e-5)
    assert found.columns["label"].tolist() == ["a", "b", "a"]
    assert (found.facts["model"], found.facts["pooling"]) == ("demo/tiny-bert", "mean")


def test_texts_that_are_gone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no longer cached"):
        jobs._encode(_job(tmp_path / "job", "0" * 32))
