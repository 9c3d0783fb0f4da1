"""Questions and contexts as overlapping features of a span model, gold positions in them, and answers back out of them.

A question with a long context becomes several features, each with a window of the context; neighbouring windows share
`doc_stride` tokens. Everything rests on the offsets that fast tokenizers give: characters into the context per token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isoviz.errors import InputError, ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Offset = tuple[int, int]


@dataclass(frozen=True)
class SpanFeatures:
    """Features of m windows over the questions of a task.

    Attributes:
        inputs: model input name → token list per feature, unpadded (m lists).
        row: (m,) int64, the question each feature belongs to, ascending.
        offsets: per feature and token the characters (start, end) into the context, None outside the context.
    """

    inputs: dict[str, list[list[int]]]
    row: np.ndarray
    offsets: list[list[Offset | None]]

    def __len__(self) -> int:
        return len(self.row)


def features(
    questions: Sequence[str],
    contexts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    doc_stride: int,
) -> SpanFeatures:
    """Cut contexts into windows; the question comes first, whatever side the tokenizer pads.

    A question is cut so that at least `doc_stride` + 1 tokens, or half of what a feature holds beside the special tokens if
    that is more, are left for the context; each feature has at most `max_length` tokens.

    Args:
        tokenizer: a fast one (offsets are needed).
        max_length: tokens per feature, special ones included.
        doc_stride: tokens shared by neighbouring windows, from 0; less than max_length minus the special tokens.

    Raises:
        ModelError: the tokenizer gives no offsets.
        InputError: max_length and doc_stride leave no room for a context token.
    """
    if not tokenizer.is_fast:
        raise ModelError.at("model", "span tasks need a fast tokenizer, and this model has a slow one")
    room = max_length - tokenizer.num_special_tokens_to_add(pair=True)
    if not 0 <= doc_stride < room - 1:
        raise InputError.at(
            "doc_stride", f"must be from 0 to {max(0, room - 2)} with max_length {max_length} (got {doc_stride})"
        )
    empty = SpanFeatures({name: [] for name in ("input_ids", "attention_mask")}, np.zeros(0, np.int64), [])
    if not questions:
        return empty
    tokens = tokenizer(
        _shortened(questions, tokenizer, room - max(doc_stride + 1, room // 2)),
        list(contexts),
        truncation="only_second",
        max_length=max_length,
        stride=doc_stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding=False,
    )
    row = np.asarray(tokens.pop("overflow_to_sample_mapping"), dtype=np.int64)
    spans = tokens.pop("offset_mapping")
    offsets = [
        [
            (int(a), int(b)) if part == 1 else None
            for part, (a, b) in zip(tokens.sequence_ids(number), span, strict=True)
        ]
        for number, span in enumerate(spans)
    ]
    order = np.argsort(row, kind="stable")
    inputs = {name: [list(values[i]) for i in order] for name, values in tokens.items()}
    return SpanFeatures(inputs, row[order], [offsets[i] for i in order])


def gold(
    features: SpanFeatures, answer_starts: Sequence[Sequence[int]], answer_texts: Sequence[Sequence[str]]
) -> np.ndarray:
    """(m, 2) first and last token of each question's first answer; (0, 0), the first token, where a feature lacks it.

    A feature has the answer only if its window holds every token that shares a character with it (white space at the
    answer's ends apart).
    """
    positions = np.zeros((len(features), 2), dtype=np.int64)
    inside: list[list[tuple[int, Offset]]] = []
    every: dict[int, set[Offset]] = {}
    for number, question in enumerate(features.row.tolist()):
        text, begin = (answer_texts[question] or [""])[0], (answer_starts[question] or [0])[0]
        begin, end = begin + len(text) - len(text.lstrip()), begin + len(text.rstrip())
        tokens = [
            (i, place)
            for i, place in enumerate(features.offsets[number])
            if place and place[0] < end and place[1] > begin
        ]
        inside.append(tokens)
        every.setdefault(question, set()).update(place for _, place in tokens)
    for number, question in enumerate(features.row.tolist()):
        if inside[number] and {place for _, place in inside[number]} == every[question]:
            positions[number] = inside[number][0][0], inside[number][-1][0]
    return positions


def best_answers(
    features: SpanFeatures,
    contexts: Sequence[str],
    start_logits: np.ndarray | Sequence[np.ndarray],
    end_logits: np.ndarray | Sequence[np.ndarray],
    n_best: int = 20,
    max_answer_length: int = 30,
) -> list[str]:
    """The answer of each question: over all its features, the span with the largest sum of start and end logit.

    Args:
        start_logits, end_logits: per feature one value per token, (m, longest) or m rows; what is beyond a feature's own
            tokens (padding, on the right) is not looked at.
        n_best: starts and ends tried per feature.
        max_answer_length: tokens of an answer at most.

    Returns:
        One text per context, cut from it; "" where no allowed span is among the n best.
    """
    best: dict[int, tuple[float, str]] = {}
    for number, question in enumerate(features.row.tolist()):
        offsets = features.offsets[number]
        context_tokens = np.array(
            [i for i, place in enumerate(offsets) if place is not None and place[1] > place[0]], int
        )
        if not len(context_tokens):
            continue
        starts, ends = (
            np.asarray(logits[number], dtype=np.float64)[context_tokens] for logits in (start_logits, end_logits)
        )
        top_starts, top_ends = (np.argsort(-values, kind="stable")[:n_best] for values in (starts, ends))
        length = context_tokens[top_ends][None, :] - context_tokens[top_starts][:, None] + 1
        scores = starts[top_starts][:, None] + ends[top_ends][None, :]
        scores = np.where((length >= 1) & (length <= max_answer_length) & ~np.isnan(scores), scores, -np.inf)
        first, last = np.unravel_index(scores.argmax(), scores.shape)
        score = float(scores[first, last])
        if score > best.get(question, (-np.inf, ""))[0]:
            begin, end = offsets[context_tokens[top_starts[first]]], offsets[context_tokens[top_ends[last]]]
            assert begin is not None and end is not None
            best[question] = (score, contexts[question][begin[0] : end[1]].strip())
    return [best.get(question, (0.0, ""))[1] for question in range(len(contexts))]


def _shortened(questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, limit: int) -> list[str]:
    """Questions of at most `limit` tokens: those that are longer end at the last character of their limit-th token."""
    tokens = tokenizer(list(questions), add_special_tokens=False, return_offsets_mapping=True, truncation=False)
    return [
        text if len(ids) <= limit else text[: places[limit - 1][1]]
        for text, ids, places in zip(questions, tokens["input_ids"], tokens["offset_mapping"], strict=True)
    ]
