"""Tokenizers that put no marks around texts, as those of decoders: empty texts, and the two texts of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoviz.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def fill_empty(rows: dict[str, list[list[int]]], tokenizer: PreTrainedTokenizerBase) -> int:
    """Rows without any token (an empty text, and a tokenizer that adds none) get the end-of-text token; how many there were."""
    empty = [row for row, ids in enumerate(rows["input_ids"]) if not ids]
    mark = next((m for m in (tokenizer.eos_token_id, tokenizer.bos_token_id) if m is not None), None)
    if empty and mark is None:
        raise InputError(
            f"data: {len(empty)} rows have no token, and this model has none for empty texts", field="data"
        )
    for row in empty:
        for name, values in rows.items():
            values[row] = [{"input_ids": mark, "attention_mask": 1}.get(name, 0) or 0]
    return len(empty)


def pair_note(tokenizer: PreTrainedTokenizerBase, texts: int) -> list[str]:
    """A sentence if a row has two texts and nothing between them, else nothing."""
    if texts < 2 or tokenizer.num_special_tokens_to_add(True) != tokenizer.num_special_tokens_to_add(False):
        return []
    return ["this model's tokenizer puts no mark between the two texts of a row"]
