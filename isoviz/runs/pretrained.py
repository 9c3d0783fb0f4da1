"""A finished run's model as a transformers directory, which loads without isoviz."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz import boundary, tasks
from isoviz.errors import InputError
from isoviz.runs import planning
from isoviz.training import weights

if TYPE_CHECKING:
    from isoviz.runs.rows import RunRow

_CLASSES = {
    "classification": "AutoModelForSequenceClassification",
    "regression": "AutoModelForSequenceClassification",
    "span": "AutoModelForQuestionAnswering",
    "seq2seq": "AutoModelForSeq2SeqLM",
}
"""Kind of a task's head → what loads it."""


def save(run: RunRow, folder: Path, target: str) -> Path:
    """Write model, tokenizer and a model card. IsoBN, batch normalisation and the IsoLayer are folded into the output layer.

    Args:
        run: finished.
        folder: of the run's files.
        target: a new or empty directory.

    Raises:
        InputError: not finished, its weights are gone, its method's map is not affine, or the target is not empty.
    """
    checkpoint = weights.newest(folder)
    if run.status != "finished" or checkpoint is None or weights.kept(folder) is None:
        why = f"it is {run.status}" if run.status != "finished" else "its weights are gone"
        raise InputError(f"run: '{run.id}' has no model to save: {why}", field="run")

    out = _empty(target)

    from isoviz.models import folding
    from isoviz.training.reload import reload

    model, head = reload(run.config, checkpoint)
    folding.save(model, out, tasks.get(run.config.task, run.config.own).label_names)
    head.tokenizer.save_pretrained(out)
    (out / "README.md").write_text(_card(run, out), encoding="utf-8")
    return out


def _empty(target: str) -> Path:
    out = boundary.path(target, "out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if os.listdir(out):
            raise InputError(f"out: '{target}' is not empty", field="out")
    except OSError as error:
        raise InputError(f"out: cannot make the folder '{target}': {boundary.reason(error)}", field="out") from None
    return out


def _card(run: RunRow, out: Path) -> str:
    config, result = run.config, run.result
    assert result is not None
    kind = tasks.get(config.task, config.own).kind
    scores = "\n".join(f"| {name} | {value:.4f} |" for name, value in result.metrics.items() if value is not None)
    prefix = f"\nIt was trained with the text `{config.prefix}` before every input.\n" if config.prefix else ""
    return f"""\
# {config.model} on {config.task}, {config.method}

Fine-tuned by isoviz (run {run.id}). What the method does to the classifier's input is part of the output layer's weights.
{prefix}
```python
from transformers import AutoTokenizer, {_CLASSES[kind]}

tokenizer = AutoTokenizer.from_pretrained("{out.name}")
model = {_CLASSES[kind]}.from_pretrained("{out.name}")
```

| Validation set | |
|---|---|
{scores}

The same run again:

```
{planning.command([config])}
```

The licence of the model that it started from holds for this one too.
"""
