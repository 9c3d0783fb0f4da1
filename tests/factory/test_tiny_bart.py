from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from factory.tasks import generate
from isoviz.demo import bundled_model_dir
from isoviz.tasks import get

FOLDER = bundled_model_dir("demo/tiny-bart")
TASKS = ("demo/translation", "demo/summarization")


@cache
def loaded() -> tuple[Any, Any]:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(FOLDER), AutoModelForSeq2SeqLM.from_pretrained(FOLDER).eval()


def test_it_loads_in_float32_and_generates() -> None:
    import torch

    tokenizer, model = loaded()
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert all(torch.isfinite(p).all() for p in model.parameters())
    inputs = tokenizer(["The doctor helped the boy.", "Who helped the girl?"], padding=True, return_tensors="pt")
    assert set(inputs) == {"input_ids", "attention_mask"}
    written = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True)
    assert written == ["the doctor helped the boy.", "who helped the girl?"]  # it learnt to write what it reads


@pytest.mark.parametrize(("subject", "right", "wrong"), [("doctors", "are", "is"), ("doctor", "is", "are")])
def test_it_fills_a_mask_with_the_right_number(subject: str, right: str, wrong: str) -> None:
    import torch

    tokenizer, model = loaded()
    inputs = tokenizer(f"The {subject} <mask> hungry.", return_tensors="pt")
    assert inputs["input_ids"][0].tolist().count(tokenizer.mask_token_id) == 1
    prefix = tokenizer(f"The {subject}", return_tensors="pt")["input_ids"][:, :-1]
    before = torch.cat([torch.tensor([[model.config.decoder_start_token_id]]), prefix], 1)
    with torch.no_grad():
        chances = model(**inputs, decoder_input_ids=before).logits[0, -1].softmax(-1)
    likely, unlikely = (float(chances[tokenizer.convert_tokens_to_ids(word)]) for word in (right, wrong))
    assert likely > 5 * unlikely


@pytest.mark.parametrize("slug", TASKS)
def test_all_words_of_its_tasks_are_known(slug: str) -> None:
    tokenizer, _ = loaded()
    texts = [row[column] for split in generate(slug).values() for row in split for column in get(slug).columns]
    ids = tokenizer(texts)["input_ids"]
    assert tokenizer.unk_token_id not in {token for row in ids for token in row}
    assert max(map(len, ids)) <= 128
    english = [row["source"] for row in generate(slug)["validation"]]
    pieces = [piece for text in english for piece in tokenizer.tokenize(text)]
    assert sum(piece.startswith("##") for piece in pieces) < 0.02 * len(pieces)
