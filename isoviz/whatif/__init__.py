"""What-if: the effect of a chain of transforms on a finished run's embeddings and frozen head, or on any vectors.

    request.py     requests of background jobs, and their keys
    embeddings.py  one pass of a run's weights over its rows, and the arrays from it
    texts.py       texts and demo sets through an encoder
    chains.py      chains of transforms as text, for addresses
    images.py      images of clouds under chains, cached and measured
    engine.py      the numbers of a run's cloud or of any vectors: instant ones, and slow ones in the background
    layer.py       IsoLayer trained on cached vectors
    export.py      a chain as a matrix or as a sentence-transformers model
    scheduler.py   the order of computations when many users move sliders at once

`isoviz.posthoc` defines how a transform acts on a cloud (`FactoredCloud`).
Nothing here imports torch before an encoder or an IsoLayer is run.
"""

from __future__ import annotations

from isoviz.whatif.embeddings import Embeddings, embeddings

__all__ = ["Embeddings", "embeddings"]
