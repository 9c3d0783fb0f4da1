"""The prefix of a text-to-text model: from its configuration, from the publication, or as requested."""

from __future__ import annotations

import pytest

from isoviz import tasks
from isoviz.errors import InputError
from isoviz.models import prefixes

T5 = {"model_type": "t5"}


def of(config, slug, direction=None):
    task = tasks.get(slug)
    return prefixes.known_prefix(config, slug, task.inputs, task.checked_direction(direction) or None)


@pytest.mark.parametrize(
    ("slug", "words"),
    [
        ("glue/cola", "cola sentence:"),
        ("glue/stsb", "stsb sentence1: | sentence2:"),
        ("glue/mnli", "mnli premise: | hypothesis:"),
        ("glue/qqp", "qqp question1: | question2:"),
        ("squad", "question: | context:"),
        ("cnn_dailymail", "summarize:"),
        ("wmt16/ro-en", "translate Romanian to English:"),
        ("demo/acceptability", None),
        ("demo/translation", None),
        ("sst5", None),
    ],
)
def test_the_published_prefixes_of_t5(slug, words):
    assert of(T5, slug) == words
    assert of({"model_type": "bart"}, slug) is None


def test_the_prefix_names_the_direction():
    assert of(T5, "wmt16/de-en", "en-de") == "translate English to German:"


def test_the_configurations_prefix_takes_precedence():
    own = {"summarization": {"prefix": "tl;dr: "}, "translation_en_to_ro": {"prefix": "to Romanian: ", "num_beams": 4}}
    for family in ("t5", "bart"):
        config = {"model_type": family, "task_specific_params": own}
        assert of(config, "cnn_dailymail") == "tl;dr:"
        assert of(config, "wmt16/ro-en", "en-ro") == "to Romanian:"
    assert of({**T5, "task_specific_params": {"summarization": {"prefix": " "}}}, "cnn_dailymail") == "summarize:"
    assert of({**T5, "task_specific_params": [1]}, "cnn_dailymail") == "summarize:"


def test_parts():
    assert prefixes.split_prefix("a b: | c:") == ("a b:", "c:")
    assert prefixes.split_prefix("| c:") == ("", "c:")
    assert prefixes.split_prefix("a") == ("a", "")
    assert prefixes.split_prefix("none") == prefixes.split_prefix(None) == ("", "")


def test_a_requested_prefix_is_used_if_it_fits():
    assert prefixes.resolve("none", T5, "glue/cola", ("sentence",), None) == "none"
    assert prefixes.resolve(None, T5, "glue/cola", ("sentence",), None) == "cola sentence:"
    with pytest.raises(
        InputError, match=r"prefix: 'glue/cola' reads one text, so there is none after \| \(got 'a \| b'\)"
    ):
        prefixes.resolve("a | b", T5, "glue/cola", ("sentence",), None)
