"""How much of a text a tokenizer does not know: unknown words all become the same token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WARNED: Final = 0.2
"""Share of unknown tokens above which a note says so."""
REFUSED: Final = 0.6
"""Share above which a run needs `allow_unknown`."""
_READ: Final = 20_000
"""Most rows read for the share."""


def share(rows: Sequence[Sequence[int]], tokenizer: PreTrainedTokenizerBase) -> float:
    """Share of unknown tokens among all but special ones, over evenly spaced rows; 0 for a tokenizer without an unknown token."""
    ids = (
        tokenizer.get_vocab()
    )  # a tokenizer recurses without end over the id of a special token that its vocabulary lacks
    unknown = ids.get(str(tokenizer.unk_token))
    others = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token}
    if unknown is None or tokenizer.unk_token in others:
        return 0.0  # in byte-level vocabularies, where nothing is unknown, another token has its name
    tokens = np.fromiter(chain.from_iterable(rows[:: 1 + len(rows) // _READ]), dtype=np.int64)
    special = [ids[token] for token in tokenizer.all_special_tokens if token in ids and ids[token] != unknown]
    words = tokens[~np.isin(tokens, special)]
    return float((words == unknown).mean()) if len(words) else 0.0


def note(unknown: float) -> list[str]:
    """A sentence on a share above `WARNED`, else nothing."""
    if unknown <= WARNED:
        return []
    return [f"the tokenizer does not know {unknown:.0%} of the tokens: the model reads them all as the same one"]
