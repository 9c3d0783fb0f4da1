"""A run's prefix: resolved when it is planned, visible in its command, and really before the texts that are read."""

from __future__ import annotations

import pytest

from isoviz import tasks
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.runs import planning
from isoviz.training import heads
from tests import tiny


def planned(model, kind, folder, **common):
    (config,) = planning.expand(
        [str(model)],
        [tiny.TASKS[kind]],
        [("baseline", {})],
        [0],
        data=str(folder),
        max_length=40,
        doc_stride=8,
        **common,
    )
    return config


@pytest.mark.parametrize("kind", [kind for kind in tiny.TASKS if kind != "embedding"])
def test_the_prefix_precedes_the_texts(tiny_models, tmp_path, kind):
    folder = tiny.write(kind, tmp_path / "data", train=4, validation=3)
    words = "w31 w32" if kind in ("classification", "seq2seq") else "w31 w32 | w33"
    read, plain = [], []
    for prefix, texts in ((words, read), ("none", plain)):
        config = planned(tiny_models("t5"), kind, folder, prefix=prefix)
        task = tasks.get(config.task)
        tokenizer = load_tokenizer(sources.resolve(config.model))
        data = tasks.load(task, config.data)
        encoded = heads.head_for(task, tokenizer, config).encode(data.validation)
        texts += [tokenizer.decode(tokens).replace("[SEP]", "|") for tokens in encoded.inputs["input_ids"]]
        texts.append(encoded.labels)
        assert list(data.validation.columns)  # the rows themselves stay as they are
        assert not data.validation[task.columns[0]].str.contains("w31 w32").any()
    labels, bare = read.pop(), plain.pop()
    if kind == "span":
        # both around the question, so that answers keep their positions
        assert all(text.startswith("w31 w32 w") and " w33 | " in text for text in read)
        assert ((labels - bare == 3) | (bare == 0)).all() or len(read) != len(plain)
        return
    assert str(labels) == str(bare)
    second = " w33" if kind == "regression" else ""
    for text, without in zip(read, plain, strict=True):
        first, *rest = without.split(" | ") if second else [without]
        assert text == " | ".join([f"w31 w32 {first}", *(f"w33 {event}" for event in rest)])
