"""Sections of the Atlas page: the choice of records, two figures, the table of encoders × layers × measures, and what it cannot say."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st

from dashboard.atlas import figures as drawing
from dashboard.components import figure
from dashboard.shared import choosing, downloads, measures, menu, wording
from isoviz import demo
from isoviz.atlas import Record, records
from isoviz.models import cache, hub

HEADLINES, LAYERS = "one per encoder", "every layer"
_OF_RULER: Final = {"noise_floor": "Noise floor (99 %)", "auc": "AUC", "threshold": "Threshold"}
"""Column of `Record.table` → heading, of what the ruler says."""
_HELP: Final = {
    "noise_floor": "99 % of unrelated pairs have a lower cosine.",
    "auc": "Probability that a related pair has a higher cosine than an unrelated one.",
    "threshold": "Above this cosine, 90 % of the pairs are related if half of all pairs are. Empty if no cosine reaches that.",
}
_FIRST: Final = {"encoder": "Encoder", "layer": "Layer", "pooling": "Pooling", "n": "n", "d": "d"}
_LAST: Final = {"weights": "Weights", "licence": "Licence", "fingerprint": "Fingerprint"}
_FEWEST: Final = 5
"""Texts per dimension, below which plain measures read low."""


@dataclass(frozen=True)
class Choice:
    """The records of one corpus, and their layers (`Record.table`) with `label`, which names the record, and `headline`."""

    records: list[Record]
    rows: pd.DataFrame


def choose() -> Choice:
    """Fields for the corpus and the encoders; all encoders by default."""
    found, problems = records.on_this_server()
    for problem in problems:
        st.warning(f"Skipped a record: {wording.plain(problem)}", icon=":material/warning:")
    names = {record.corpus.digest: f"{record.corpus.name} ({record.corpus.digest[:8]})" for record in found}
    left, right = st.columns([2, 3])
    with left:
        corpus = st.selectbox("Corpus", list(dict.fromkeys(names.values())), key="atlas_corpus", bind="query-params")
    found = [record for record in found if names[record.corpus.digest] == corpus]
    with right:
        encoders = choosing.several("Encoders", sorted({one.encoder.name for one in found}), "atlas_encoders")
    chosen = [record for record in found if not encoders or record.encoder.name in encoders]
    chosen.sort(key=lambda record: record.headline.noise.cosine)
    counts = Counter(_short(record) for record in chosen)
    rows = []
    for record in chosen:
        name = _short(record)
        label = f"{name}, {record.protocol} ({record.encoder.fingerprint[:6]})" if counts[name] > 1 else name
        of_record = pd.DataFrame(record.table()).assign(label=label)
        rows.append(of_record.assign(headline=of_record.index == len(of_record) - 1))
    texts = chosen[0].corpus
    size = f"{texts.texts:,} texts, {texts.pairs:,} related pairs, content hash {texts.digest}"
    protocol = "Protocol: texts of different pairs count as unrelated, at most 128 tokens are read, half of all pairs are assumed related"
    st.caption(wording.plain(f"{size}. {protocol}, and the threshold has a precision of 0.9."))
    return Choice(chosen, pd.concat(rows, ignore_index=True))


def _short(record: Record) -> str:
    return record.encoder.name.rpartition("/")[2]


def figures(choice: Choice) -> None:
    """Noise floors with intervals, and a measure over the layers."""
    left, right = st.columns(2)
    with left:
        headlines = choice.rows[choice.rows["headline"]]
        figure.draw(
            drawing.floors(headlines),
            key="atlas_floors",
            words=f"Noise floor with its interval, and threshold, of {len(headlines)} encoders",
            title=drawing.FLOORS.title,
            explanation=drawing.FLOORS,
        )
    with right:
        slugs = {title: slug for slug, title in (_measures(choice.rows) | _OF_RULER).items()}
        title = st.selectbox("Over the layers", list(slugs), index=1, key="atlas_measure", bind="query-params")
        means = choice.rows[choice.rows["pooling"] == "mean"]
        figure.draw(
            drawing.over_layers(means, slugs[title], title),
            key="atlas_layers",
            words=f"{title} over the layers of {len(choice.records)} encoders",
            explanation=drawing.LAYERS,
        )


def _measures(rows: pd.DataFrame) -> dict[str, str]:
    """Slug → title of the measures that the records have, those first that are shown where space is limited."""
    known = [metric for metric in measures.of_clouds() if metric.slug in rows]
    return {metric.slug: metric.number_title for metric in sorted(known, key=lambda metric: not metric.headline)}


def table(choice: Choice) -> None:
    """The table, which sorts by a click on a heading, and its files."""
    scope = st.segmented_control(
        "Rows", [HEADLINES, LAYERS], default=HEADLINES, required=True, key="atlas_rows", bind="query-params"
    )
    rows = choice.rows[choice.rows["headline"]] if scope == HEADLINES else choice.rows
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {heading: number(format="%.4f", help=_HELP[name]) for name, heading in _OF_RULER.items()}
    config |= {m.number_title: number(help=m.tooltip, format=f"%.{m.decimals}f") for m in measures.of_clouds()}
    config["Explore"] = st.column_config.LinkColumn(display_text="open", help="Models that are on this machine")
    st.dataframe(
        readable(rows),
        hide_index=True,
        column_config=config,
        placeholder="–",
        alt="Encoders and layers with their noise floor, AUC, threshold and measures of isotropy",
    )
    documents = [record.model_dump(mode="json") for record in choice.records]
    file = downloads.file_name("isoviz", "atlas", choice.records[0].corpus.name)
    downloads.buttons(file, rows.drop(columns=["label", "headline"]), json=lambda: json.dumps(documents))


def readable(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with headings, and a link to Explore where the model can be opened."""
    ends = zip(rows["noise_floor_low"], rows["noise_floor_high"], strict=True)
    links = {name: _link(name) for name in rows["encoder"].unique()}
    names = _FIRST | _OF_RULER | _measures(rows) | _LAST
    shown = rows[list(names)].rename(columns=names)
    shown.insert(len(_FIRST) + 1, "95 % interval", [f"{low:.3f} to {high:.3f}" for low, high in ends])
    shown.insert(1, "Explore", rows["encoder"].map(links))
    return shown


def _link(name: str) -> str | None:
    parsed = hub.parse(name)  # a record may have any name
    here = name in demo.bundled_models() or (parsed is not None and cache.find(*parsed) is not None)
    return f"explore?explore_model={name}" if here else None


def reservations(choice: Choice) -> None:
    """What the numbers may not be used for, and how records come in."""
    few = choice.rows.loc[choice.rows["n"] < _FEWEST * choice.rows["d"], "encoder"].nunique()
    st.header("What these numbers cannot tell", anchor=False)
    st.markdown(
        f"""
- **Your threshold.** Floors and thresholds hold for texts like these, and for that share of related pairs. Measure your own.
- **Floors of different corpora do not compare**, nor do those of different poolings: one encoder has another floor on other texts.
- **Which encoder to choose.** A floor says where unrelated cosines lie, not how well an encoder ranks. The AUC is of these paraphrases.
- **IsoScore and ranks at few texts.** {few} of {choice.rows["encoder"].nunique()} encoders have fewer than {_FEWEST} texts per dimension,
  where these read low. Compare the unbiased IsoScore.
"""
    )
    for record in choice.records:
        for note in record.notes:
            st.caption(wording.plain(f"{record.encoder.name}: {note}."))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(menu.RULER, label="Measure your own texts", icon=":material/straighten:")
        st.caption("Records in the folder `atlas` of `ISOVIZ_HOME` appear here (`isoviz atlas`).", width="content")
