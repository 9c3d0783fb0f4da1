"""The page about the transforms: its code runs, its table holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from factory.reference_docs import transforms_part
from isoviz import metrics, posthoc
from isoviz.parameters import start_values
from tests.posthoc.clouds import cloud

PAGE = (Path(__file__).parents[2] / "docs" / "posthoc.md").read_text()
CENTRED = ("zca", "pca_whitening", "all_but_the_top", "cluster_based", "batch_norm")


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


def test_all_but_the_top_goes_both_ways():
    isotropic = posthoc.zca().fit_transform(cloud())
    assert metrics.isoscore(posthoc.all_but_the_top(remove=2).fit_transform(isotropic)) == pytest.approx((6 - 1) / 7)
    rogue = np.random.default_rng(0).normal(size=(300, 8)) * np.array([50.0] + [1.0] * 7)
    image = posthoc.all_but_the_top(remove=1).fit_transform(rogue)
    assert metrics.isoscore(rogue) < 0.01 < 0.7 < metrics.isoscore(image)
    values = np.linalg.eigvalsh(np.cov(rogue.T))[::-1]
    assert metrics.explained_variance(image)[0] == pytest.approx(values[1] / values[1:].sum())


@pytest.mark.parametrize("slug", CENTRED)
def test_centred_clouds_have_little_mean_cosine(slug):
    train = cloud(mean=30)
    assert metrics.mean_cosine(train) > 0.9
    image = posthoc.get(slug)(**start_values(posthoc.get(slug).Params)).fit_transform(train)
    np.testing.assert_allclose(image.mean(axis=0), 0, atol=1e-9)
    assert abs(metrics.mean_cosine(image)) < 0.05
