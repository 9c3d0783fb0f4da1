from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from factory.tasks import SLUGS, generate
from isoviz.demo import bundled_model_dir
from isoviz.tasks import get

FOLDER = bundled_model_dir("demo/tiny-bert")


@cache
def loaded() -> tuple[Any, Any]:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(FOLDER), AutoModelForMaskedLM.from_pretrained(FOLDER).eval()


def probabilities(sentence: str) -> dict[str, float]:
    """Word → probability in the place of the one [MASK]."""
    import torch

    tokenizer, model = loaded()
    inputs = tokenizer(sentence, return_tensors="pt")
    place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    with torch.no_grad():
        chances = model(**inputs).logits[0, place].softmax(-1)
    return dict(zip(tokenizer.convert_ids_to_tokens(range(len(chances))), chances.tolist(), strict=True))


def test_it_loads_as_a_classifier_in_float32_with_its_pooler() -> None:
    import torch
    from transformers import AutoModelForSequenceClassification

    model, info = AutoModelForSequenceClassification.from_pretrained(FOLDER, num_labels=2, output_loading_info=True)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert set(info["missing_keys"]) == {"classifier.weight", "classifier.bias"}
    assert all(torch.isfinite(p).all() for p in model.parameters())


@pytest.mark.parametrize("slug", [slug for slug in SLUGS if get(slug).kind != "seq2seq"])
def test_words_of_the_tasks_are_single_pieces(slug: str) -> None:
    tokenizer, _ = loaded()
    sentences = [row[column] for row in generate(slug)["validation"][:200] for column in get(slug).columns]
    pieces = [piece for sentence in sentences for piece in tokenizer.tokenize(sentence)]
    assert tokenizer.unk_token not in pieces
    assert sum(piece.startswith("##") for piece in pieces) < 0.02 * len(pieces)


def test_masked_words_agree_in_number_across_an_attractor() -> None:
    number = {"singular": ("is", "was", "has"), "plural": ("are", "were", "have")}
    for subject, right, wrong in (
        ("doctor near the cars", "singular", "plural"),
        ("doctors near the car", "plural", "singular"),
    ):
        chances = probabilities(f"The {subject} [MASK] hungry.")
        assert sum(chances[word] for word in number[right]) > 0.8
        assert sum(chances[word] for word in number[wrong]) < 0.15
