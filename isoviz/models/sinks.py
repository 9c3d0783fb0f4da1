"""Attention sinks: tokens to which attention falls back, most often a decoder's first (Xiao et al., arXiv:2309.17453).

Their states are massive (Sun et al., arXiv:2402.17762): a few of them decide the mean and the covariance of a layer's tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torch import Tensor

TIMES: Final = 10.0
"""A token counts as a sink if its norm in some layer exceeds this many times the median norm of its text's tokens there.

Sun et al. call an entry massive above 1,000 times the median magnitude. One such entry makes a norm of 674 / √d times that of a
Gaussian vector: at least 10 times up to d = 4,500.
"""


def mask(states: Sequence[Tensor], keep: Tensor) -> Tensor:
    """(B, L) bool: the tokens that are sinks. A text's last token never counts, so that no text is left without any.

    A text is judged by itself, so batch and padding change nothing.

    Args:
        states: (B, L, d) of each layer, padded on the right; without the embeddings.
        keep: (B, L) bool, True for tokens.
    """
    import torch

    found = torch.zeros_like(keep)
    last = keep.sum(dim=1, keepdim=True).clamp(min=1) - 1
    for state in states:
        norms = torch.linalg.vector_norm(state.detach(), dim=2, dtype=torch.float32)
        ascending = norms.masked_fill(~keep, torch.inf).sort(dim=1).values
        found |= keep & (norms > TIMES * ascending.gather(1, last // 2))  # of two middle norms the lower
    return found.scatter(1, last, False)


def note(left_out: int, count: int) -> str:
    """How many of a pass's tokens were left out, as a sentence for records."""
    return f"{left_out:,} of {count:,} tokens were left out as attention sinks"
