"""The page about the transforms: its code runs, its table holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from factory.reference_docs import transforms_part
from isoviz import posthoc
from tests.posthoc.clouds import cloud

PAGE = (Path(__file__).parents[2] / "docs" / "posthoc.md").read_text()


def test_the_snippet_gives_the_map_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    np.save("train.npy", cloud())
    np.save("vectors.npy", cloud(9, seed=1))
    names = {}
    exec(code, names)
    affine = names["transform"].affine()
    np.testing.assert_allclose(names["image"], names["dev"] @ affine.matrix + names["offset"], atol=1e-10)


def test_soft_zca_is_named_with_its_paper():
    assert posthoc.zca.name(posthoc.zca(eps=0.1).params) == "Soft-ZCA whitening"
    assert posthoc.zca.name(posthoc.zca().params) == "ZCA whitening"
    assert "Soft-ZCA whitening: Diera et al. 2024" in transforms_part()
    assert "2411.17538" in posthoc.zca.variants["Soft-ZCA whitening"].bibtex
