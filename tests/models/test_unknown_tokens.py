"""The share of unknown tokens, by counting."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from isoviz.models.tokenizer_limits import unknown_note, unknown_share


def tokenizer(**tokens: Any) -> Any:
    usual = {"unk_token": "[UNK]", "bos_token": None, "eos_token": None, "pad_token": "[PAD]"}
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    ids = {token: number for number, token in enumerate(special)}
    return SimpleNamespace(
        get_vocab=lambda: ids, all_special_tokens=[*special, "not in the vocabulary"], **usual | tokens
    )


@pytest.mark.parametrize(
    ("rows", "share"),
    [([[2, 1, 1, 7, 3], [2, 8, 3, 0, 0]], 0.5), ([[2, 3]], 0.0), ([], 0.0), ([[2, 1, 3]] * 50_000 + [[9]], 1.0)],
)
def test_unknown_tokens_are_counted_without_special_ones(rows: list[list[int]], share: float) -> None:
    assert unknown_share(rows, tokenizer()) == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize("unknown", [None, "", "not in the vocabulary", "[SEP]"])
def test_without_an_unknown_token_of_its_own_a_vocabulary_knows_every_word(unknown: str | None) -> None:
    assert unknown_share([[3, 3, 4]], tokenizer(unk_token=unknown, eos_token="[SEP]")) == 0


def test_a_note_begins_above_a_fifth() -> None:
    assert unknown_note(0.2) == []
    assert "21%" in unknown_note(0.21)[0]
