"""What the Compare page says: verdicts, figure, table, the questions that get worse, files, and recorded encoders."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.compare import figures
from dashboard.compare.form import PREFIX
from dashboard.components import figure
from dashboard.export import button
from dashboard.inputs import set_sections
from dashboard.shared import downloads, exported, menu, wording
from dashboard.shared.exported import ExportedSentences, ExportedTable
from isoviz import demo
from isoviz.readouts.encoders import Difference, EncoderComparison, in_points


def draw(found: EncoderComparison) -> None:
    """Everything about one comparison, in the order of its saved page."""
    count = f"{found.questions:,} questions, {found.documents:,} documents" if found.questions else ""
    asked = (
        f"Which encoder ranks higher? {count}"
        if count
        else f"Do the encoders find the same neighbours? {found.documents:,} rows"
    )
    exported.note(PREFIX + "asked", ExportedSentences("Question", (f"{asked}.",)))
    exported.note(PREFIX + "answer", ExportedSentences("Answer", found.sentences))
    sure, advice = _sure(found), tuple(_advice(one, found) for one in found.differences) if found.questions else ()
    exported.note(PREFIX + "sure", ExportedSentences("How sure", (sure, *found.notes)))
    st.header(asked, anchor=False)
    for sentence in found.sentences:
        st.markdown(f"**{wording.plain(sentence)}**")
    for line in advice:
        st.markdown(wording.plain(line))
    st.caption(wording.plain(" ".join((sure, *found.notes))))
    figure.draw(
        figures.changes(found),
        key=PREFIX + "changes",
        words=f"Change of search quality by {len(found.differences)} encoders, with intervals",
        title=figures.CHANGE.title,
        explanation=figures.CHANGE if found.questions else None,
    )
    if advice:
        exported.note(PREFIX + "advice", ExportedSentences("What to do", advice))
    frame = figures.table(found)
    words = "Each encoder's quality with 95 % intervals, noise floor and cost"
    exported.note(PREFIX + "table", ExportedTable("Details", frame))
    st.dataframe(frame, hide_index=True, key=PREFIX + "table", placeholder="–", alt=words)
    if found.slices:
        st.header("By slice", anchor=False)
        set_sections.show_slices(list(found.slices), PREFIX)
    _worse(found)
    _files(found, frame)


def _sure(found: EncoderComparison) -> str:
    if not found.questions:
        return "Intervals count rows."
    return (
        f"Intervals and tests count {found.units:,} independent questions: those that share a relevant document count once. The verdict is "
        f"about nDCG@10, at 5 % error over all encoders; the margin is {in_points(found.margin)}. It holds for questions like these."
    )


def _advice(one: Difference, found: EncoderComparison) -> str:
    """What follows from a verdict."""
    first, other = (shown for shown in (found.encoders[0], next(e for e in found.encoders if e.name == one.name)))
    if one.outcome == "higher":
        return f"{one.name}: switching raises the ranking. Encode all documents again, and measure a new threshold with the ruler."
    if one.outcome == "lower" and not one.harmless:
        return f"{one.name}: do not switch for the ranking. Read the questions below that get worse."
    if one.outcome == "cannot tell":
        return f"{one.name}: these questions do not decide it. Add questions before you switch."
    if other.bytes < first.bytes:
        return f"{one.name}: it saves {100 * (1 - other.bytes / first.bytes):.0f} % of the bytes without harm above your margin."
    return f"{one.name}: choose by cost and licence; the ranking loses nothing above your margin."


def _worse(found: EncoderComparison) -> None:
    """The questions that get worse, with the first documents of both encoders side by side."""
    if not found.questions:
        return
    st.header("Questions that get worse", anchor=False)
    names = [one.name for one in found.differences]
    chosen = names[0]
    if len(names) > 1:
        chosen = st.selectbox("By", names, key=PREFIX + "by", bind="query-params", width=320)
    difference = next((one for one in found.differences if one.name == chosen), found.differences[0])
    if not difference.worse:
        st.caption(f"No question gets worse by {wording.plain(difference.name)}.")
        return
    first = found.encoders[0].name
    st.caption(
        f"nDCG@10 and the first documents of each encoder: ✓ relevant, cosine, id, text. The {len(difference.worse)} largest falls."
    )
    rows = []
    for place, one in enumerate(difference.worse):
        title, fall = f"{one.question}: {one.text}" if one.text else one.question, f"{one.before:.2f} → {one.after:.2f}"
        frame = figures.hits(one, first, difference.name)
        with st.expander(f"{wording.plain(title)}  :gray[{fall}]", expanded=place == 0, key=f"{PREFIX}worse_{place}"):
            st.dataframe(frame, hide_index=True, key=f"{PREFIX}hits_{place}", alt=f"First documents of {title}")
        rows.append(frame.assign(Question=title, **{"nDCG@10": fall}))
    every = pd.concat(rows, ignore_index=True)
    exported.note(PREFIX + "worse", ExportedTable("Questions that get worse", every, private=True))


def _files(found: EncoderComparison, frame: pd.DataFrame) -> None:
    st.header("Take it home", anchor=False)
    title = st.text_input(
        "Title of the page", key=PREFIX + "title", placeholder="Should we change our encoder?", width=420, max_chars=120
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = ", ".join(one.name for one in found.encoders)
        button.offer("Compare", names, title=title)
        downloads.buttons("isoviz-compare", frame, json=lambda: found.model_dump_json(indent=1))


def references() -> None:
    """Encoders recorded on everyday sentences."""
    st.header("Recorded encoders", anchor=False)
    rows = [
        {
            "Encoder": row["name"],
            "d": row["d"],
            "Bytes per vector": 4 * row["d"],
            "Noise floor (99 %)": _ends(row["noise_floor"]),
            "AUC": _ends(row["auc"]),
            "Weights": row["weights"],
            "Licence": row["licence"],
        }
        for row in demo.reference_encoders()
    ]
    words = "Recorded encoders with their noise floor and AUC"
    st.dataframe(pd.DataFrame(rows), hide_index=True, key=PREFIX + "recorded", alt=words)
    n = demo.reference_encoders()[0]["n"]
    st.caption(
        f"For orientation: {n} everyday English sentences (*demo/everyday*), in pairs of paraphrases. 99 % of unrelated pairs "
        "lie below the noise floor; AUC is the probability that a paraphrase has a higher cosine than an unrelated sentence. Floors of "
        "different texts do not compare."
    )
    st.page_link(menu.RULER, label="Measure your own texts", icon=":material/straighten:")


def _ends(ends: list[float]) -> str:
    return f"{ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f})"
