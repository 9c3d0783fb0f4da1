"""What a tokenizer cannot tell a model: words that it does not know, empty texts, and where the second text of a pair begins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from isoviz.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WARNED: Final = 0.2
"""Share of unknown tokens above which a note says so: all of them become the same token."""
REFUSED: Final = 0.6
"""Share above which a run needs `allow_unknown`."""
_READ: Final = 20_000
"""Most rows read for the share."""


def unknown_share(rows: Sequence[Sequence[int]], tokenizer: PreTrainedTokenizerBase) -> float:
    """Share of unknown tokens among all but special ones, over evenly spaced rows; 0 for a tokenizer without an unknown token."""
    # a tokenizer recurses without end over the id of a special token that its vocabulary lacks
    ids = tokenizer.get_vocab()
    unknown = ids.get(str(tokenizer.unk_token))
    others = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token}
    if unknown is None or tokenizer.unk_token in others:
        return 0.0  # in byte-level vocabularies, where nothing is unknown, another token has its name
    tokens = np.fromiter(chain.from_iterable(rows[:: 1 + len(rows) // _READ]), dtype=np.int64)
    special = [ids[token] for token in tokenizer.all_special_tokens if token in ids and ids[token] != unknown]
    words = tokens[~np.isin(tokens, special)]
    return float((words == unknown).mean()) if len(words) else 0.0


def unknown_note(unknown: float) -> list[str]:
    """A sentence on a share above `WARNED`, else nothing."""
    if unknown <= WARNED:
        return []
    return [f"the tokenizer does not know {unknown:.0%} of the tokens: the model reads them all as the same one"]


def fill_empty(rows: dict[str, list[list[int]]], tokenizer: PreTrainedTokenizerBase) -> int:
    """Rows without any token (an empty text, and a tokenizer that adds none) get the end-of-text token; how many there were."""
    empty = [row for row, ids in enumerate(rows["input_ids"]) if not ids]
    mark = next((m for m in (tokenizer.eos_token_id, tokenizer.bos_token_id) if m is not None), None)
    if empty and mark is None:
        raise InputError.at("data", f"{len(empty)} rows have no token, and this model has none for empty texts")
    for row in empty:
        for name, values in rows.items():
            values[row] = [{"input_ids": mark, "attention_mask": 1}.get(name, 0) or 0]
    return len(empty)


def pair_note(tokenizer: PreTrainedTokenizerBase, texts: int) -> list[str]:
    """A sentence if a row has two texts and nothing between them, else nothing."""
    if texts < 2 or tokenizer.num_special_tokens_to_add(True) != tokenizer.num_special_tokens_to_add(False):
        return []
    return ["this model's tokenizer puts no mark between the two texts of a row"]
