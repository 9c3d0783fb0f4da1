"""A finished run's embeddings and frozen head, or any vectors, and what a chain of transforms would do to them.

    request.py     what is computed in the background, and the key of its content
    jobs.py        the two kinds of job that compute it
    encoding.py    the one pass of the run's weights over its rows
    embeddings.py  what that pass left, as arrays
    texts.py       texts and demo sets through an encoder
    chains.py      a chain of transforms as text, for an address, and back
    images.py      the images under chains, shared by both engines
    engine.py      a run's numbers: at once where that is possible, all of them in the background
    vectors.py     the same of any vectors: read-outs, and curves over a parameter
    heads.py       the frozen head, a refitted one, and the paired bootstrap between two predictions
    layer.py       IsoLayer trained on the spot
    export.py      a chain as a matrix, or as a model for sentence-transformers
    scheduler.py   whose question is computed next, when many move sliders at once
    notebook.py    the same as a few lines of Python

How a transform acts on a cloud is said in `isoviz.posthoc`: by the transform itself, on a `FactoredCloud`.
Nothing here imports torch before an encoder or an IsoLayer is run.
"""

from __future__ import annotations

from isoviz.whatif.embeddings import Embeddings, embeddings

__all__ = ["Embeddings", "embeddings"]
