"""Task prefixes: words that a text-to-text model was taught to find before a text. Plain facts, no torch.

A prefix is one line; what stands after a `|` goes before the second text: `mrpc sentence1: | sentence2:`. Between a prefix and
its text there is one blank. `none` is no prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from isoviz.errors import InputError

NONE: Final = "none"
SEPARATOR: Final = "|"

_LANGUAGES: Final = {"de": "German", "en": "English", "fr": "French", "ro": "Romanian"}
_SUMMARIES: Final = ("cnn_dailymail", "demo/summarization")


def resolve(
    requested: str | None, config: Mapping[str, Any], slug: str, columns: Sequence[str], direction: str | None
) -> str | None:
    """The prefix of a run: as asked, if it fits the texts; else what the model knows. See `known_prefix`.

    Raises:
        InputError: words for a second text where there is one only.
    """
    if requested is not None and SEPARATOR in requested and len(columns) < 2:
        raise InputError.at(
            "prefix", f"'{slug}' reads one text, so there is none after {SEPARATOR} (got '{requested}')"
        )
    return known_prefix(config, slug, columns, direction) if requested is None else requested


def known_prefix(config: Mapping[str, Any], slug: str, columns: Sequence[str], direction: str | None) -> str | None:
    """The prefix that a model knows for a task; None where it knows none.

    Its own `task_specific_params` come first; then, for the family T5, the published ones (Raffel et al. 2020, appendix D),
    with the texts in the order of our columns. Two texts stay two, with the end token between them; the published form is one.

    Args:
        config: the content of the model's `config.json`.
        slug: of the task.
        columns: the text columns that it reads.
        direction: of a translation, "en-ro".
    """
    name = _name(slug, direction)
    per_task = config.get("task_specific_params")
    task_settings = per_task.get(name) if isinstance(per_task, dict) else None
    prefix = task_settings.get("prefix") if isinstance(task_settings, dict) else None
    if isinstance(prefix, str) and prefix.strip():
        return prefix.strip()
    return _published(slug, columns, direction) if config.get("model_type") == "t5" else None


def split_prefix(prefix: str | None) -> tuple[str, str]:
    """The prefixes of the first and the second text; empty for none."""
    if prefix is None or prefix == NONE:
        return "", ""
    first, _, second = prefix.partition(SEPARATOR)
    return first.strip(), second.strip()


def _name(slug: str, direction: str | None) -> str:
    if direction:
        return "translation_" + direction.replace("-", "_to_")
    return "summarization" if slug in _SUMMARIES else slug


def _published(slug: str, columns: Sequence[str], direction: str | None) -> str | None:
    if direction:
        languages = [_LANGUAGES.get(code) for code in direction.split("-")]
        return None if None in languages else f"translate {languages[0]} to {languages[1]}:"
    if slug in _SUMMARIES:
        return "summarize:"
    named = [f"{column}:" for column in columns]
    if slug.startswith("glue/"):
        named[0] = f"{slug.removeprefix('glue/')} {named[0]}"
    elif slug != "squad":
        return None
    return f" {SEPARATOR} ".join(named)
