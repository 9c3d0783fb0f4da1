"""What a chain leaves the program as gives the same vectors without it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from typing import Any

import numpy as np
import pytest

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.models import sources
from isoviz.models.extract import encode
from isoviz.posthoc import export
from tests.models import readers
from tests.models.sentence_folders import TEXTS, make

ORIGIN = export.Origin(
    "zca~all_but_the_top:remove=1", "made rows", "0" * 32, 14, "all of them", "tiny, mean",
    (export.Effect("accuracy", 0.5, 0.625, -0.01, 0.2, "8 validation rows"),),
)  # fmt: skip
FRESH = """
import sys, numpy as np
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu", local_files_only=True)
np.save(sys.argv[2], model.encode(open(sys.argv[3]).read().splitlines()))
assert not any(name == "isoviz" or name.startswith("isoviz.") for name in sys.modules)
"""


def fitted(points: Any) -> posthoc.Chain:
    # ε: the whitened rounding of 14 points in 16 dimensions would be the test's, not the export's
    return posthoc.chain([posthoc.zca(eps=0.01), posthoc.all_but_the_top(remove=1), posthoc.shift(by=0.5)]).fit(points)


def test_the_matrix_and_six_lines_of_numpy_give_the_image(tmp_path, monkeypatch):
    points = np.random.default_rng(0).normal(size=(60, 5)) * [9, 3, 1, 1, 0.1] + 4
    chain = posthoc.chain([posthoc.pca_whitening(components=3), posthoc.scale(factor=2)]).fit(points)
    with zipfile.ZipFile(io.BytesIO(export.as_numpy(export.require_affine(chain), ORIGIN))) as archive:
        archive.extractall(tmp_path)
    np.save(tmp_path / "vectors.npy", points)
    monkeypatch.chdir(tmp_path)
    readme = (tmp_path / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line]) <= 6
    exec(code, {})
    np.testing.assert_allclose(np.load(tmp_path / "image.npy"), chain.transform(points), atol=1e-12)
    assert "accuracy: 0.5000 → 0.6250 (difference -0.0100 to 0.2000 at 95 %), 8 validation rows" in readme
    origin = json.loads((tmp_path / "origin.json").read_text())
    assert (
        origin["rows"] == 14 and origin["effects"][0]["high"] == 0.2 and origin["versions"]["numpy"] == np.__version__
    )


def test_a_chain_that_is_no_matrix_is_refused():
    points = np.random.default_rng(0).normal(size=(30, 4)) + 3
    chain = posthoc.chain([posthoc.zca(), posthoc.mean_removal()]).fit(points)
    with pytest.raises(InputError, match="chain: mean_removal is not affine"):
        export.require_affine(chain)


MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Dense and Normalize": ({"dense": 12, "normalize": True}, {}),
    "truncated": ({"normalize": True, "truncate": 9}, {}),
    "truncated by choice": ({"layer_norm": True}, {"truncate": 7}),
    "with a prompt": ({"prompts": {"query": "w1 w2 "}, "include_prompt": False}, {"prompt": "query"}),
    "cut": ({"pooling": "max"}, {"max_length": 6}),
}


@pytest.mark.parametrize("case", MODELS)
def test_an_exported_model_gives_the_pages_vectors(case, tmp_path, tiny_models):
    options, made = MODELS[case]
    source = sources.resolve(str(make(tmp_path / "model", tiny_models("bert"), **options)))
    points = encode(source, TEXTS, **made)
    chain = fitted(points)
    folder = tmp_path / "out"
    share = export.as_sentence_transformer(
        export.require_affine(chain), ORIGIN, source, folder, pooling="sentence", **made
    )
    image = chain.transform(points)
    assert share <= export.TOLERANCE
    encoded = encode(str(folder), TEXTS)  # read back as any other model
    np.testing.assert_allclose(encoded, image, atol=1e-5 * np.linalg.norm(image, axis=1).max())


def test_an_earlier_layer_is_exported_without_the_layers_after_it(tmp_path):
    from isoviz.models.extract import layer_views

    source = sources.resolve("demo/tiny-bert")
    texts = [f"the {word} sleeps" for word in ("cat", "dog", "child", "king", "old man", "bird")] * 3
    points = layer_views(source, [texts], poolings=["mean"], layers=[2]).points(2, "mean")
    chain = posthoc.chain([posthoc.zca(eps=0.1)]).fit(points)
    export.as_sentence_transformer(chain.affine(), ORIGIN, source, tmp_path / "out", pooling="mean", layer=2)
    image = chain.transform(points)
    np.testing.assert_allclose(
        encode(str(tmp_path / "out"), texts), image, atol=1e-5 * np.linalg.norm(image, axis=1).max()
    )
    assert json.loads((tmp_path / "out" / "config.json").read_text())["num_hidden_layers"] == 2


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
def test_a_bare_transformer_is_exported_with_its_pooling(pooling, tmp_path, tiny_models):
    source = sources.resolve(
        str(readers.make("Llama", tmp_path / "base") if pooling == "last" else tiny_models("bert"))
    )
    points = encode(source, TEXTS, pooling=pooling)
    chain = fitted(points)
    export.as_sentence_transformer(export.require_affine(chain), ORIGIN, source, tmp_path / "out", pooling=pooling)
    image = chain.transform(points)
    np.testing.assert_allclose(
        encode(str(tmp_path / "out"), TEXTS), image, atol=1e-5 * np.linalg.norm(image, axis=1).max()
    )


def test_the_bundled_model_in_a_fresh_process_without_isoviz(tmp_path):
    source = sources.resolve("demo/tiny-bert")
    texts = ["the cat sleeps", "a dog that the child saw runs", "it rains"] * 6
    points = encode(source, texts, pooling="mean")
    chain = posthoc.chain([posthoc.zca(eps=0.1)]).fit(points)
    archive = export.zipped_model(
        lambda folder: export.as_sentence_transformer(chain.affine(), ORIGIN, source, folder, pooling="mean")
    )
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        opened.extractall(tmp_path / "model")
    (tmp_path / "texts").write_text("\n".join(texts))
    out = tmp_path / "vectors.npy"
    subprocess.run([sys.executable, "-c", FRESH, tmp_path / "model", out, tmp_path / "texts"], check=True, cwd=tmp_path)
    image = chain.transform(points)
    np.testing.assert_allclose(np.load(out), image, atol=1e-5 * np.linalg.norm(image, axis=1).max())
    assert "zca" in (tmp_path / "model" / "README.md").read_text()


def test_a_cloud_far_from_the_origin_keeps_its_digits(tmp_path, tiny_models):
    source = sources.resolve(str(tiny_models("bert")))
    points = encode(source, TEXTS, pooling="cls")  # these tiny first tokens hardly differ
    chain = posthoc.chain([posthoc.zca(eps=1e-6)]).fit(points)
    folder = tmp_path / "out"
    assert export.as_sentence_transformer(chain.affine(), ORIGIN, source, folder, pooling="cls") <= export.TOLERANCE
    assert {path.name for path in folder.glob("*_Dense")} == {"2_Dense", "3_Dense"}


def test_an_export_that_is_another_model_is_refused(tmp_path, tiny_models, monkeypatch):
    source = sources.resolve(str(make(tmp_path / "model", tiny_models("bert"), dense=8)))
    chain = fitted(encode(source, TEXTS))
    monkeypatch.setattr(export, "append_dense", lambda model, affine, points, truncate: None)
    with pytest.raises(InputError, match="give different vectors"):
        export.as_sentence_transformer(chain.affine(), ORIGIN, source, tmp_path / "out", pooling="sentence")
    assert {path.name for path in tmp_path.iterdir()} == {"model"}, "nothing half-written stays"
    with pytest.raises(InputError, match="'head' is not a sentence-transformers pooling"):
        export.as_sentence_transformer(chain.affine(), ORIGIN, source, tmp_path / "out", pooling="head")
