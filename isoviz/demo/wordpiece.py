"""The demo model's own WordPiece vocabulary, trained on the generated text."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BertTokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(sentences: Iterable[str], size: int, max_length: int) -> BertTokenizer:
    """A lower-casing BERT tokenizer with `size` pieces.

    Every printable ASCII character is in the alphabet, alone and as a continuation ("##x"), so any English text
    becomes pieces, never [UNK]. The vocabulary is ordered by special tokens, alphabet, then merges: deterministic for
    the same text.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertTokenizer

    characters = [c for c in string.printable if not c.isspace() and not c.isupper()]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    continuations = [f"##{c}" for c in characters]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size - len(continuations),
        initial_alphabet=characters,
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    learned = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    pieces = list(dict.fromkeys([*SPECIAL, *characters, *continuations, *(piece for piece, _ in learned)]))
    return BertTokenizer(
        vocab={piece: index for index, piece in enumerate(pieces)}, do_lower_case=True, model_max_length=max_length
    )
