"""A user's vectors and texts, from files (`isoviz.tables`), pasted lines or the hub: checked and stored by content.

    cells.py     vectors that are written in one cell
    columns.py   the columns of a table that hold vectors; tables that are larger than memory
    pairs.py     similarity scores of pairs, relevance of documents to queries
    searches.py  documents, questions and relevance as one set
    reading.py   any file as a checked `VectorSet` or `TextSet`
    intake.py    reading files for a page, with short summaries as results
    sets.py      these sets, and their store
    embedded.py  a set inside a page without a server

It does not depend on runs or training, and does not import torch.
"""

from isoviz.vectors.reading import Columns, from_points, from_texts, read, read_texts
from isoviz.vectors.sets import STORE, TextSet, VectorSet, forget, keep, load, load_any

__all__ = [
    "STORE",
    "Columns",
    "TextSet",
    "VectorSet",
    "forget",
    "from_points",
    "from_texts",
    "keep",
    "load",
    "load_any",
    "read",
    "read_texts",
]
