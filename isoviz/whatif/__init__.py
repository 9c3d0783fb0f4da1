"""What-if: the effect of a chain of transforms on a finished run's embeddings and frozen head, or on any vectors.

    request.py     requests of background jobs, and their keys
    jobs.py        the two kinds of job
    encoding.py    one pass of a run's weights over its rows
    embeddings.py  the arrays from that pass
    texts.py       texts and demo sets through an encoder
    chains.py      chains of transforms as text, for addresses
    images.py      images of clouds under chains, shared by both engines
    engine.py      a run's numbers: instant ones, and slow ones in the background
    vectors.py     the same for any vectors: read-outs, and curves over a parameter
    heads.py       the frozen head, and the paired bootstrap between predictions
    layer.py       IsoLayer trained on cached vectors
    export.py      a chain as a matrix or as a sentence-transformers model
    scheduler.py   the order of computations when many users move sliders at once
    notebook.py    the page's numbers as Python code

`isoviz.posthoc` defines how a transform acts on a cloud (`FactoredCloud`).
Nothing here imports torch before an encoder or an IsoLayer is run.
"""

from __future__ import annotations

from isoviz.whatif.embeddings import Embeddings, embeddings

__all__ = ["Embeddings", "embeddings"]
