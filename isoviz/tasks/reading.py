"""Span and text tasks, as small as training needs them."""

from __future__ import annotations

from isoviz.tasks.protocol import Task

TASKS = (
    Task(
        slug="squad",
        title="SQuAD",
        description="Where in the text is the answer?",
        columns=("question", "context"),
        label_names=(),
        metrics=("f1", "exact_match"),
        primary="f1",
        source="Rajpurkar et al. 2016",
        licence="CC BY-SA 4.0",
        hub=("rajpurkar/squad", "plain_text"),
        kind="span",
        label="answers",
    ),
    Task(
        slug="wmt16/ro-en",
        title="WMT16 Romanian-English",
        description="Translate a sentence.",
        columns=("source", "target"),
        label_names=(),
        metrics=("bleu",),
        primary="bleu",
        source="Bojar et al. 2016",
        licence="As its sources.",
        hub=("wmt/wmt16", "ro-en"),
        kind="seq2seq",
        label="translation",
    ),
)
