"""Every task of the catalogue with its bundled model: read, encoded, predicted, scored and measured, as before a run's first step.

tests/training/test_kinds.py trains each kind of head; tests/methods/test_conformance.py holds what methods do on each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isoviz import tasks
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.runs import planning
from isoviz.training import heads
from isoviz.training.reload import build
from tests.tasks.test_kinds import rows_of, write
from tests.training.running import measured


def folder_for(slug: str, root: Path) -> str | None:
    """Files of a task that reads some, in its own columns."""
    task = tasks.get(slug)
    if task.generated:
        return None
    validation = {name: rows_of(task, 6) for name in (task.validation, *(there for _, there in task.extra))}
    return str(write(root / slug.replace("/", "-"), ".jsonl", train=rows_of(task, 12), **validation))


@pytest.mark.parametrize("slug", list(tasks.catalogue()))
def test_a_task_with_its_bundled_model(slug: str, tmp_path: Path) -> None:
    task = tasks.get(slug)
    model_name = "demo/tiny-bart" if task.kind == "seq2seq" else "demo/tiny-bert"
    (config,) = planning.expand(
        [model_name], [slug], [("istar", {})], [0], data=folder_for(slug, tmp_path), epochs=1, max_train=12, max_eval=6,
        batch_size=6, max_length=64, doc_stride=16, precision="no", threads=1,
    )  # fmt: skip
    source = sources.resolve(config.model)
    head = heads.head_for(task, load_tokenizer(source, config.direction), config)
    model, mismatch = build(config, source, head, allow_random=False)
    scores, isotropy = measured(config, model, head)
    # six rows may leave a correlation undefined, but no metric may be forgotten
    assert not mismatch and set(task.metrics) <= set(scores) and np.isfinite(scores["loss"])
    assert isotropy.clouds["head"].n == 6 and isotropy.number("isoscore_star") is not None
