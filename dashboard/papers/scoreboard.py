"""The scoreboard: every claim of the four papers with its verdict, in a table with links to the studies."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final
from urllib.parse import quote

import pandas as pd
import streamlit as st

from dashboard.papers import records
from dashboard.shared import choosing, downloads
from isoviz import studies

NO_RESULT: Final = "no result yet"
OUTCOMES: Final = ("held", "not held", "cannot tell", NO_RESULT)
COLUMNS: Final = ("Where", "Verdict", "Claim", "Numbers", "From")


def draw() -> None:
    """The scoreboard of all papers."""
    frame = claims()
    counts = Counter(frame["Verdict"])
    tally = " · ".join(f"**{counts[outcome]}** {outcome}" for outcome in OUTCOMES if counts[outcome])
    st.header("Which claims hold here?", anchor=False)
    st.markdown(f"{len(frame)} claims: {tally}")
    st.caption(
        "“Cannot tell” means that the seeds show neither; it does not mean equal. At the quick scale, verdicts are on small models and "
        "generated tasks: they say whether the effect appears here, not whether the paper is right."
    )
    table = frame[list(COLUMNS)]
    links = [
        f"papers?study={slug}#{quote(where, safe=',')}"
        for slug, where in zip(frame["study"], frame["Where"], strict=True)
    ]
    linked = table.assign(Where=links)
    papers = {str(name): linked.loc[rows.index] for name, rows in frame.groupby("paper", sort=False)}
    for paper, tab in choosing.tabs(list(papers), "papers_claims").items():
        with tab:
            _table(papers[paper])
    downloads.buttons("claims", table, with_parquet=False)


def _table(claims_of_paper: pd.DataFrame) -> None:
    lines = math.ceil(claims_of_paper["Numbers"].str.len().max() / 57)  # characters in a line of that column
    height = max(92, 12 + 18 * lines)  # of a row: Streamlit wraps text in rows above 4rem
    st.dataframe(
        claims_of_paper,
        hide_index=True,
        height=min(38 + height * len(claims_of_paper), 600),
        row_height=height,
        column_config={
            "Where": st.column_config.LinkColumn("Where", display_text=r"#[^,]*,(?:%20| )(.*)", width=160),
            "Verdict": st.column_config.TextColumn("Verdict", width=90),
            "Claim": st.column_config.TextColumn("Claim", width=200),
            "Numbers": st.column_config.TextColumn("Numbers", width=420),
            "From": st.column_config.TextColumn("From", width=130),
        },
        alt="Claims with their verdicts, the numbers behind them, and links to their studies",
    )


def claims() -> pd.DataFrame:
    """One row per claim in the order of print, with its `study`, also for claims without a result."""
    lines = []
    for study in dict.fromkeys(entry.study for entry in studies.listed()):
        available = records.records(study)
        judged = [record for record in available if record.result.verdicts]
        record = next((record for record in judged if record.complete), next(iter(judged), None))
        verdict_of = {verdict.claim: verdict for verdict in record.result.verdicts} if record else {}
        for claim in study.claims:
            verdict = verdict_of.get(claim.sentence)
            lines.append(
                {
                    "study": study.slug,
                    "paper": study.source.name,
                    "Where": f"{study.source.name}, {study.place}",
                    "Verdict": verdict.outcome if verdict else NO_RESULT,
                    "Claim": claim.sentence,
                    "Numbers": verdict.sentence if verdict else "",
                    "From": record.name if record and verdict else "",
                }
            )
    return pd.DataFrame(lines)
