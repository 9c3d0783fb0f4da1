"""Bundled texts with annotations: a search, rated pairs and labelled sentences. An encoder turns them into vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isoviz import demo
from isoviz.vectors.sets import TextSet

if TYPE_CHECKING:
    import pandas as pd

RETRIEVAL: Final = "demo/retrieval"
TITLES: Final = {
    RETRIEVAL: "Search: 200 queries, 2,000 documents",
    "demo/similarity": "Similarity: 990 rated pairs of sentences",
    "demo/topics": "Labels: 2,000 sentences on six topics",
}
"""Titles by slug, in display order."""
RECORDED: Final = {slug: demo.EXAMPLE + slug.replace("/", "-") for slug in TITLES}
"""By slug: the key of the vectors that ship (`factory/record_examples.py`), from the bundled encoder's layer that is shown first."""


def read(slug: str) -> TextSet:
    """The texts of a demo set, with ids; KeyError for another name."""
    return {RETRIEVAL: _search, "demo/similarity": _pairs, "demo/topics": _labelled}[slug]()


def _search() -> TextSet:
    import pandas as pd

    queries, documents, relevance = (_table(RETRIEVAL, name) for name in ("queries", "documents", "relevance"))
    parts = [queries.assign(group="query"), documents.drop(columns="topic").assign(group="document")]
    both = pd.concat(parts, ignore_index=True)
    pairs = relevance.set_axis(["left", "right", "score"], axis=1)
    return TextSet(both, RETRIEVAL, pairs.astype({"score": float}), "relevance")


def _pairs() -> TextSet:
    import pandas as pd

    rows = _table("demo/similarity", "validation")
    texts = pd.unique(pd.concat([rows["sentence1"], rows["sentence2"]]))
    ids = {text: f"s{number}" for number, text in enumerate(texts)}
    pairs = pd.DataFrame(
        {
            "left": rows["sentence1"].map(ids),
            "right": rows["sentence2"].map(ids),
            "score": rows["label"].astype(float),
        }
    )
    columns = pd.DataFrame({"id": list(ids.values()), "text": texts})
    return TextSet(columns, "demo/similarity", pairs, "similarity")


def _labelled() -> TextSet:
    return TextSet(_table(RETRIEVAL, "documents").rename(columns={"topic": "label"}), "demo/topics")


def _table(slug: str, name: str) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(demo.rows_dir(slug) / f"{name}.parquet")
