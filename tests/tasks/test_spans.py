"""Windows over contexts: gold answers survive the round trip for any text, window and overlap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from isoviz.tasks import spans

WORDS = ["north", "Ärger", "crème", "42", "東京", "naïve", "x", "I", "😀", "don't", "mid-day", "(far)", "e\u0301tude"]


def fast(lower: bool, template: str, side: str = "right") -> PreTrainedTokenizerFast:
    """A word tokenizer that splits punctuation off; `lower` also drops accents, so that texts and offsets differ in length."""
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    if lower:
        backend.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=template, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        padding_side=side,
    )


TOKENIZERS = [
    fast(True, "[CLS] $A [SEP] $B:1 [SEP]:1"),
    fast(False, "[CLS] $A [SEP] [SEP] $B:1 [SEP]:1", "left"),
]


@st.composite
def questions(draw):
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=40))
    gaps = draw(st.lists(st.sampled_from([" ", "  ", "\n", " \t"]), min_size=len(words), max_size=len(words)))
    context, places = "", []
    for word, gap in zip(words, gaps, strict=True):
        places.append((len(context), len(context) + len(word)))
        context += word + gap
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first, len(words) - 1))
    begin, end = places[first][0], places[last][1]
    return " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=30))), context, begin, context[begin:end]


@given(st.lists(questions(), min_size=1, max_size=3), st.sampled_from(TOKENIZERS), st.integers(10, 60), st.data())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_answers_come_back_or_are_longer_than_any_window(rows, tokenizer, longest, data):
    special = tokenizer.num_special_tokens_to_add(pair=True)
    stride = data.draw(st.integers(0, longest - special - 2))
    question_texts, contexts, starts, texts = zip(*rows, strict=True)
    starts, texts = [[start] for start in starts], [[text] for text in texts]
    windows = spans.features(question_texts, contexts, tokenizer, longest, stride)
    assert sorted(set(windows.row.tolist())) == list(range(len(rows)))
    assert all(len(ids) <= longest for ids in windows.inputs["input_ids"])
    for number, row in enumerate(windows.row):  # the offsets point at the context's own tokens
        for token, place in zip(windows.inputs["input_ids"][number], windows.offsets[number], strict=True):
            assert place is None or (token not in (0, 2, 3) and contexts[row][slice(*place)].strip())
    positions = spans.gold(windows, starts, texts)
    answers = spans.best_answers(windows, contexts, *one_hot(windows, positions), max_answer_length=100)
    for row, (got, right) in enumerate(zip(answers, texts, strict=True)):
        if (positions[windows.row == row] > 0).any():
            assert got == right[0]
            continue
        # words are whole tokens here, so the only way to lose an answer is that no window holds it
        windows_of_row = np.flatnonzero(windows.row == row)
        inside = {tuple(place) for number in windows_of_row for place in windows.offsets[number] if place}
        begin, end = starts[row][0], starts[row][0] + len(right[0])
        size = len({place for place in inside if place[0] < end and place[1] > begin})
        assert size > min(stride, max(sum(p is not None for p in windows.offsets[n]) for n in windows_of_row) - 1)


def one_hot(windows, positions, longest=70):
    logits = np.full((2, len(windows), longest), -9.0)
    for number, (first, last) in enumerate(positions):
        logits[0, number, first], logits[1, number, last] = 9.0, 9.0
    logits[:, :, max(len(places) for places in windows.offsets) :] = np.inf  # padding is always ignored
    return logits


def test_windows_share_the_overlap_and_cover_the_context():
    context = " ".join(f"w{i}" for i in range(20))
    windows = spans.features(["why ?"], [context], TOKENIZERS[0], 13, 3)
    starts = [[place[0] for place in places if place] for places in windows.offsets]
    assert [len(start) for start in starts] == [8, 8, 8, 5]
    for before, after in pairwise(starts):
        assert before[-3:] == after[:3]
    assert spans.gold(windows, [[context.index("w7")]], [["w7"]]).tolist() == [[11, 11], [6, 6], [0, 0], [0, 0]]


def test_a_long_question_leaves_room_for_the_context():
    windows = spans.features(["word " * 100, "short"], ["a b c d e f g h i j k l"] * 2, TOKENIZERS[0], 23, 4)
    inside = [sum(place is not None for place in places) for places in windows.offsets]
    assert max(inside[: (windows.row == 0).sum()]) == 10  # half of 23 less three special tokens
    assert all(len(ids) <= 23 for ids in windows.inputs["input_ids"])


def test_the_best_span_is_found_over_all_features_by_brute_force():
    generator = np.random.default_rng(0)
    contexts = [" ".join(f"w{i}" for i in range(30)), "only four words here"]
    windows = spans.features(["why ?", "who ?"], contexts, TOKENIZERS[0], 14, 4)
    logits = generator.normal(size=(2, len(windows), 14))
    best = {}
    for number, row in enumerate(windows.row):
        places = windows.offsets[number]
        for first, begin in enumerate(places):
            for last in range(first, min(first + 3, len(places))):
                if begin and places[last]:
                    score = logits[0, number, first] + logits[1, number, last]
                    if score > best.get(row, (-np.inf,))[0]:
                        best[row] = (score, contexts[row][begin[0] : places[last][1]])
    found_answers = spans.best_answers(windows, contexts, *logits, max_answer_length=3)
    assert found_answers == [best[0][1], best[1][1]]
