"""The demo model's own WordPiece vocabulary, made from the generated text."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BertTokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = tuple(c for c in string.printable if not c.isspace() and not c.isupper())


def vocabulary(sentences: Iterable[str], size: int) -> list[str]:
    """At most `size` pieces: special tokens, characters, words by frequency, then beginnings and endings.

    Every printable ASCII character is there alone and as a continuation ("##x"), so that any English text becomes pieces,
    never [UNK]. Words come by frequency; beginnings and endings ("un", "##ing") by the number of words that have them. Ties go
    by the alphabet: unlike the trainers of the tokenizers library, this gives the same vocabulary in every process.
    """
    words = Counter(word for sentence in sentences for word in re.findall(r"[a-z]+", sentence.lower()))
    parts: Counter[str] = Counter()
    for word in words:
        for length in range(2, min(7, len(word) - 1)):
            parts[word[:length]] += 1
            parts[f"##{word[-length:]}"] += 1
    ordered = (sorted(counts, key=lambda piece: (-counts[piece], piece)) for counts in (words, parts))
    pieces = [*SPECIAL, *CHARACTERS, *(f"##{c}" for c in CHARACTERS), *(piece for group in ordered for piece in group)]
    return list(dict.fromkeys(pieces))[:size]


def make_tokenizer(sentences: Iterable[str], size: int, max_length: int) -> BertTokenizer:
    """A lower-casing BERT tokenizer over the text's `vocabulary`."""
    from transformers import BertTokenizer

    pieces = vocabulary(sentences, size)
    return BertTokenizer(
        vocab={piece: index for index, piece in enumerate(pieces)}, do_lower_case=True, model_max_length=max_length
    )
