"""Whether a checkpoint fits the network that its configuration describes, found out before anything is started.

transformers itself compares them, on its meta device: it reads the names and shapes in the files' headers and no weights, so
that a model of 440 MB takes 0.1 s and no memory.
"""

from __future__ import annotations

import functools

from isoviz.models.loading import Mismatch, load_bare, refusal
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import HeadKind


def require(source: ModelSource, kind: HeadKind | None = None) -> None:
    """Raise `ModelError` unless every encoder weight is there and has its place; a new head may be missing.

    Args:
        source: on this machine; of one on the hub nothing is known before it is fetched.
        kind: of the head that it is to be fine-tuned with; None if it is only read.
    """
    if mismatch := mismatch_of(source, kind):
        raise refusal(source, mismatch)


def mismatch_of(source: ModelSource, kind: HeadKind | None = None) -> Mismatch:
    """The encoder weights on which a network and its checkpoint differ; arguments as for `require`.

    Raises:
        ModelError: the files cannot be loaded at all.
    """
    if source.kind in ("bundled", "hub"):  # the tests of the factory hold ours to their checkpoints
        return Mismatch((), ())
    return _compared(source, kind)


def words(source: ModelSource, kinds: tuple[HeadKind, ...]) -> str:
    """The first mismatch as text, for these heads, or for reading alone if there are none; empty where all fits.

    Pages call it in another process, because comparing loads torch.
    """
    return next((str(mismatch) for kind in kinds or (None,) if (mismatch := mismatch_of(source, kind))), "")


@functools.lru_cache(maxsize=64)
def _compared(source: ModelSource, kind: HeadKind | None) -> Mismatch:
    if kind is None:
        return load_bare(source, allow_random=True, device_map="meta")[1]
    from isoviz.models.adapter import load_network_with_mismatch

    # how many classes there are changes the head alone
    return load_network_with_mismatch(source, 2, 0, kind, allow_random=True, device_map="meta")[1]
