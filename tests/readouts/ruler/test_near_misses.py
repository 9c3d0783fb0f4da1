"""Near misses: the bundled sentences, and how many of them a cosine lets through."""

from __future__ import annotations

import difflib

import numpy as np
import pytest

from isoviz.readouts.ruler.near_misses import KINDS, near_misses, texts


def test_each_form_differs_from_its_original_in_one_name_number_or_negation() -> None:
    forms = np.reshape(texts(), (-1, 4))
    assert len(set(texts())) == forms.size >= 250 and not any(set("{|}") & set(text) for text in texts())
    for original, *changed in forms.tolist():
        for kind, other in zip(KINDS, changed, strict=True):
            matcher = difflib.SequenceMatcher(None, original.split(), other.split(), autojunk=False)
            edits = [one for one in matcher.get_opcodes() if one[0] != "equal"]
            new = " ".join(" ".join(other.split()[start:end]) for *_, start, end in edits)
            assert ("not" in new) == (kind == "negation"), other
            assert any(letter.isdigit() for letter in new) == (kind == "number"), other
            if kind != "negation":
                assert len(edits) == 1, other


def test_shares_above_a_cosine_and_wilsons_interval() -> None:
    points = np.random.default_rng(0).normal(size=(len(texts()), 12)) + 1.0
    found = near_misses(points)
    n = len(points) // 4
    loop = [
        [points[4 * i] @ y / np.linalg.norm(points[4 * i]) / np.linalg.norm(y) for y in points[4 * i + 1 : 4 * i + 4]]
        for i in range(n)
    ]
    np.testing.assert_allclose(found.cosines, loop)
    above = found.above(0.5)
    assert above["share"] == pytest.approx(np.mean(np.array(loop) > 0.5))
    for at, kind in enumerate(KINDS):
        assert above["by_kind"][kind] == pytest.approx(np.mean([row[at] > 0.5 for row in loop]))
    p, z = round(above["share"] * n) / n, 1.959964
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert above["low"] == pytest.approx((p + z**2 / (2 * n) - half) / (1 + z**2 / n), abs=1e-6)
    assert above["high"] == pytest.approx((p + z**2 / (2 * n) + half) / (1 + z**2 / n), abs=1e-6)
    assert found.sentence(0.5).startswith(f"Of {3 * n} English sentences")
    assert near_misses(np.repeat(points[::4], 4, axis=0)).above(0.999)["share"] == 1.0  # what cannot tell them apart
