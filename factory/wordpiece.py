"""The demo model's own WordPiece vocabulary, made from the generated text."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import BertTokenizer, PreTrainedTokenizerFast

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


SEQUENCE_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # names and order as in BART


def make_sequence_tokenizer(
    sentences: Iterable[str], first: Iterable[str], size: int, max_length: int
) -> PreTrainedTokenizerFast:
    """A lower-casing tokenizer for an encoder-decoder: <s> text </s>.

    `first` are pieces that come before the words of the sentences, which come by frequency.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Counter(word for sentence in sentences for word in re.findall(r"[a-z]+", sentence.lower()))
    ordered = sorted(words, key=lambda word: (-words[word], word))
    pieces = list(
        dict.fromkeys([*SEQUENCE_SPECIAL, *CHARACTERS, *(f"##{c}" for c in CHARACTERS), *first, *ordered])
    )[:size]  # fmt: skip
    ids = {piece: index for index, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(ids, unk_token="<unk>"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B </s>",
        special_tokens=[(token, ids[token]) for token in ("<s>", "</s>")],
    )
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        cls_token="<s>",
        sep_token="</s>",
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=max_length,
    )
