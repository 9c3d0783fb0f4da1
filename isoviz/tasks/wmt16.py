"""WMT16 news translation, by the column names of the Hugging Face data set wmt/wmt16. Either direction of each pair."""

from __future__ import annotations

from isoviz.tasks.protocol import Task


def _pair(code: str, language: str) -> Task:
    return Task(
        slug=f"wmt16/{code}-en",
        title=f"WMT16 {language}–English",
        description=f"Translate {language} news into English, or English news into {language}.",
        columns=("source", "target"),
        # Ding et al. 2022 print BLEU, of English to Romanian and of German to English
        metrics=("bleu", "chrf"),
        kind="seq2seq",
        directions=(f"{code}-en", f"en-{code}"),
        source="Bojar et al. 2016",
        cites=("bojar2016findings",),
        licence="Free for research purposes.",
        hub=("wmt/wmt16", f"{code}-en"),
    )


TASKS = (_pair("ro", "Romanian"), _pair("de", "German"))
