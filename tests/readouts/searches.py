"""A made search: questions near their documents, as encoders with more or less noise see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Made(NamedTuple):
    """Vectors of documents (c, d) and questions (q, d), and relevance (g, 3): question, document, grade."""

    documents: np.ndarray
    questions: np.ndarray
    relevance: np.ndarray

    def seen(self, noise: float, seed: int = 9) -> tuple[np.ndarray, np.ndarray]:
        """Documents and questions with noise."""
        generator = np.random.default_rng(seed)
        return tuple(
            (part + noise * generator.standard_normal(part.shape)).astype(np.float32)
            for part in (self.documents, self.questions)
        )  # type: ignore[return-value]


def made(seed: int = 0, documents: int = 150, questions: int = 60, d: int = 24, noise: float = 0.9) -> Made:
    """Each question has a document of grade 2, and half of them another one of grade 1."""
    generator = np.random.default_rng(seed)
    points = generator.standard_normal((documents, d))
    first = generator.permutation(documents)[:questions]
    asked = points[first] + noise * generator.standard_normal((questions, d))
    links = [(row, place, 2) for row, place in enumerate(first)]
    links += [(row, (place + 1) % documents, 1) for row, place in enumerate(first) if row % 2]
    return Made(points, asked, np.array(links))
