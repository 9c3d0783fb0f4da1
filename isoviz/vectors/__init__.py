"""Vectors and texts of a person's own, from files, pasted lines or the hub: read, checked, kept by content.

    arrays.py    .npy, .npz and .safetensors
    tables.py    Parquet, Arrow, CSV, TSV, JSON lines and data sets of the hub
    streams.py   tables that are larger than memory
    pairs.py     similarity scores of pairs, relevance of documents to queries
    reading.py   any of them as a `VectorSet` or a `TextSet`, or why not
    intake.py    reading files for a page, with short summaries as results
    sets.py      what those are, and where they are kept

It knows neither runs nor training, and imports no torch.
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
