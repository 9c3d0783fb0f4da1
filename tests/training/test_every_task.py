"""Every task of the catalogue with its bundled model, end to end: trained, evaluated, measured, saved, and read again.

One method serves: what methods do on each kind of head is held by tests/methods/test_conformance.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from isoviz import tasks
from isoviz.events import Event
from isoviz.runs import planning
from isoviz.training import checkpoints, train
from isoviz.training.batches import Collator
from isoviz.training.reload import reload
from tests.tasks.test_kinds import rows_of, write


def folder_for(slug: str, root: Path) -> str | None:
    """Files of a task that reads some, in its own columns."""
    task = tasks.get(slug)
    if task.generated:
        return None
    validation = {name: rows_of(task, 6) for name in (task.validation, *(there for _, there in task.extra))}
    return str(write(root / slug.replace("/", "-"), ".jsonl", train=rows_of(task, 12), **validation))


@pytest.mark.slow
@pytest.mark.parametrize("slug", list(tasks.catalogue()))
def test_a_task_with_its_bundled_model(slug: str, tmp_path: Path) -> None:
    task = tasks.get(slug)
    model = "demo/tiny-bart" if task.kind == "seq2seq" else "demo/tiny-bert"
    (config,) = planning.expand(
        [model], [slug], [("istar", {})], [0], data=folder_for(slug, tmp_path), epochs=1, max_train=12, max_eval=6,
        batch_size=6, max_length=64, doc_stride=16, precision="no", threads=1,
    )  # fmt: skip
    events: list[Event] = []
    train(config, events.append, lambda: False, tmp_path / "run")
    last = events[-1]
    assert last.kind == "finished", events
    # six rows may leave a correlation undefined, but no metric may be forgotten
    assert set(task.metrics) <= set(last.metrics) and np.isfinite(last.metrics["loss"])
    assert last.isotropy.clouds["head"].n == 6 and last.isotropy.number("isoscore_star") is not None
    assert "istar" in next(event for event in events if event.kind == "stepped").losses
    folder = checkpoints.newest(tmp_path / "run")
    assert folder is not None
    again, head = reload(config, folder)
    data = tasks.load(task, config.data, config.direction, config.max_train, config.max_eval)
    encoded = head.encode(data.validation)
    batch = Collator(head.tokenizer.pad_token_id)([encoded[0], encoded[1]])
    batch.pop("item")
    with torch.no_grad():
        assert again(**batch).logits.isfinite().all()
