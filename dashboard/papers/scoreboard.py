"""The scoreboard: every claim of the four papers with its verdict, as a picture and as a table with links to the studies."""

from __future__ import annotations

from collections import Counter
from html import escape
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components import figure
from dashboard.papers import records
from dashboard.shared import choosing, downloads, theme
from isoviz import studies
from isoviz.studies.papers import place_names

NO_RESULT: Final = "no result yet"
MARKS: Final = MappingProxyType(
    {
        "held": (theme.STRENGTH_SCALE[0][1], "✓"),
        "not held": (theme.STRENGTH_SCALE[2][1], "✕"),
        "cannot tell": (theme.NEUTRAL, "?"),
        NO_RESULT: ("rgba(128,128,128,0.3)", "–"),
    }
)
"""Outcome → colour and sign."""
COLUMNS: Final = ("Where", "Verdict", "Claim", "Numbers", "From")
_LABEL: Final = MappingProxyType({"showarrow": False, "xanchor": "left"})


def draw() -> None:
    """The scoreboard of all papers."""
    frame = claims()
    counts = Counter(frame["Verdict"])
    tally = " · ".join(f"**{counts[outcome]}** {outcome}" for outcome in MARKS if counts[outcome])
    st.header("Which claims hold here?", anchor=False)
    st.markdown(f"{len(frame)} claims: {tally}")
    st.caption(
        "One square per claim, grouped by table (T) and figure (F) in the order of print. “Cannot tell” means that the seeds show neither; "
        "it does not mean equal. At the quick scale, verdicts are on small models and generated tasks: they say whether the effect appears "
        "here, not whether the paper is right."
    )
    figure.draw(
        picture(frame),
        key="papers_scoreboard",
        words=f"Claims by paper and verdict: {', '.join(f'{counts[outcome]} {outcome}' for outcome in MARKS if counts[outcome])}.",
        name="isoviz-claims",
        about="Claims of four papers on isotropy, judged by IsoViz on its own runs or on recorded ones.",
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
    st.dataframe(
        claims_of_paper,
        hide_index=True,
        height=min(38 + 92 * len(claims_of_paper), 600),
        row_height=92,  # Streamlit wraps text in rows above 4rem
        column_config={
            "Where": st.column_config.LinkColumn("Where", display_text=r"#(.*)", width=170),
            "Verdict": st.column_config.TextColumn("Verdict", width=90),
            "Claim": st.column_config.TextColumn("Claim", width=300),
            "Numbers": st.column_config.TextColumn("Numbers", width=420),
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
                    "place": study.place,
                    "Where": f"{study.source.name}, {study.place}",
                    "Verdict": verdict.outcome if verdict else NO_RESULT,
                    "Claim": claim.sentence,
                    "Numbers": verdict.sentence if verdict else "",
                    "From": record.name if record and verdict else "",
                }
            )
    return pd.DataFrame(lines)


def picture(frame: pd.DataFrame) -> go.Figure:
    """A square per claim: a row per paper, with a gap between tables and figures."""
    at: list[float] = []
    drawn = go.Figure()
    for row, (paper, of_paper) in enumerate(frame.groupby("paper", sort=False)):
        held = (of_paper["Verdict"] == "held").sum()
        title = f"<b>{escape(str(paper))}</b> · {held} of {len(of_paper)} held"
        drawn.add_annotation(x=0, y=row - 0.3, text=title, yanchor="bottom", font={"size": 13}, **_LABEL)
        x = 0.0
        for place, of_place in of_paper.groupby("place", sort=False):
            drawn.add_annotation(x=x, y=row + 0.2, text=_short(str(place)), yanchor="top", font={"size": 9}, **_LABEL)
            at += [x + step for step in range(len(of_place))]
            x += len(of_place) + 0.4
    cells = frame.assign(x=at, row=pd.factorize(frame["paper"])[0])
    for outcome, (colour, sign) in MARKS.items():
        part = cells[cells["Verdict"] == outcome]
        drawn.add_bar(
            orientation="h",
            base=part["x"].tolist(),
            x=[0.9] * len(part),
            y=part["row"].tolist(),
            width=0.4,
            marker={"color": colour, "line": {"width": 0}},
            text=[sign] * len(part),
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": "white", "size": 14},
            name=f"{sign} {outcome}",
            showlegend=bool(len(part)),
            customdata=part[["Where", "Claim"]].map(escape).to_numpy().tolist(),
            hovertemplate=f"%{{customdata[0]}}: {outcome}<br>%{{customdata[1]}}<extra></extra>",
        )
    hidden = {"visible": False, "fixedrange": True}
    rows = frame["paper"].nunique()
    drawn.update_layout(
        theme.figure_layout(
            height=60 + 96 * rows,
            showlegend=True,
            barmode="overlay",
            xaxis={**hidden, "range": [-0.1, max(at) + 1.1]},
            yaxis={**hidden, "range": [rows - 0.5, -0.7]},
        )
    )
    return drawn


def _short(place: str) -> str:
    """`Figures 1, 2 and 4, Table 2` → `F1 F2 F4 T2`."""
    return " ".join(f"{name[0]}{name.split()[1]}" for name in place_names(place))
