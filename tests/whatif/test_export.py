"""A run's model, exported, gives what its output layer reads, and then the chain."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.exploring import encoders
from isoviz.jobs import queue
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.models.hooks import Hooks
from isoviz.posthoc import export as posthoc_export
from isoviz.readouts.division import divide
from isoviz.runs import pretrained
from isoviz.runs.store import Store
from isoviz.whatif import chains, embeddings, export
from isoviz.whatif.engine import WhatIf
from isoviz.whatif.request import request_for
from tests.jobs.here import work_here
from tests.models.sentence_folders import TEXTS
from tests.tiny import TinyModels
from tests.whatif.trained import train

CHAIN = "all_but_the_top:remove=1~zca:eps=0.01"


@pytest.fixture(scope="module")
def original(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with an IsoBN run whose texts had words before them."""
    home = tmp_path_factory.mktemp("exported")
    return home, train(home, tiny_models, "isobn", max_train=64, max_eval=40, epochs=1, prefix="w3 w4")


@pytest.mark.parametrize("cloud", ["head", "pooled"])
def test_a_run_is_exported_as_its_own_model_with_the_chain(
    cloud: Any, original: tuple[Path, str], tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    shutil.copytree(original[0], tmp_path / "home")
    engine = WhatIf(embeddings(original[1], cloud=cloud))
    steps = chains.read(CHAIN)
    affine, origin = export.matrix_of(engine, steps, engine.full(steps))
    image = affine.of_points(engine.source.validation.astype(np.float64))
    cloud_image = engine.image(steps)
    np.testing.assert_allclose(
        np.linalg.norm(image, axis=1), np.linalg.norm(cloud_image.image(cloud_image.validation), axis=1)
    )

    store = Store(None)
    row = store.get(original[1])
    checkpoint = Path(request_for(row, store.folder_of(row.id)).checkpoint)
    order = export.spec_of_run(row.config, checkpoint, cloud, engine.source.key)
    request = export.request(order, affine, origin)
    key = queue.content_key(export.EXPORT, *request)
    assert work_here(export.EXPORT, key, *request).status == "done"
    result = export.EXPORTED.find(key)
    assert result is not None and result.facts["deviation"] <= posthoc_export.TOLERANCE
    with zipfile.ZipFile(io.BytesIO(result.arrays[export.ARCHIVE].tobytes())) as archive:
        archive.extractall(tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    encoded = model.encode(engine.source.texts)  # the words before each text are its default prompt
    # the encoder rounds its vectors by the batch and the processor, and the map enlarges that
    rounding = 2.0**-22 * np.linalg.norm(engine.source.validation, axis=1).max()
    np.testing.assert_allclose(encoded, image, atol=rounding * np.linalg.norm(affine.matrix, 2))
    readme = (tmp_path / "model" / "README.md").read_text()
    assert f"Chain: `{chains.write(steps)}`" in readme and "refitted head" in readme and "64 rows" in readme


def test_a_decoder_is_exported_with_its_pooling(tmp_path: Path, tiny_models: TinyModels) -> None:
    from sentence_transformers import SentenceTransformer

    (home := tmp_path / "home").mkdir(mode=0o700)
    settings = {"max_train": 32, "max_eval": 20, "epochs": 1, "lora_rank": 2, "pooling": "mean"}
    run = train(home, tiny_models, model=str(tiny_models("gpt2")), **settings)
    engine = WhatIf(embeddings(run))
    assert not engine.source.head.bias.any()
    steps = chains.read(CHAIN)
    affine, origin = export.matrix_of(engine, steps, engine.full(steps))
    store = Store(home)
    row = store.get(run)
    checkpoint = Path(request_for(row, store.folder_of(run)).checkpoint)
    order = export.spec_of_run(row.config, checkpoint, "head", engine.source.key)
    export.write_model(order, affine, origin, tmp_path / "model")
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    image = affine.of_points(engine.source.validation.astype(np.float64))
    np.testing.assert_allclose(
        model.encode(engine.source.texts), image, atol=1e-5 * np.linalg.norm(image, axis=1).max()
    )
    with pytest.raises(InputError) as refused:  # transformers' own class reads the last token
        pretrained.request(row, store.folder_of(run))
    assert refused.value.field == "run"
    store.close()


@pytest.mark.parametrize("family", ["albert", "roberta", "distilbert", "electra"])
def test_every_family_with_one_layer_before_the_output(family: str, tmp_path: Path, tiny_models: TinyModels) -> None:
    source = sources.resolve(str(tiny_models(family)))
    model = HeadedModel(load_network(source, 2, seed=0), Hooks()).eval()
    tokenizer = load_tokenizer(source)
    base: Any = model.network.base_model
    base.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    bare = posthoc_export.bare_transformer(str(tmp_path), "cls", None)
    export._append_head(bare, model)
    batch = encoders._batch(tokenizer, [TEXTS], 64)
    np.testing.assert_allclose(bare.encode(TEXTS), model(**batch).head.detach().numpy(), atol=1e-5)


@pytest.mark.slow
def test_embedded_texts_take_their_model_along(tmp_path: Path) -> None:
    from isoviz.models.extract import encode

    texts = [
        f"the {noun} {verb}"
        for noun in ("cat", "dog", "king", "bird", "child", "doctor")
        for verb in ("sleeps", "runs", "left")
    ]
    points = encode("demo/tiny-bert", texts, pooling="mean")
    known = pd.DataFrame({"text": texts, "label": [text.split()[1] for text in texts]})
    facts = {"model": "demo/tiny-bert", "pooling": "mean", "layer": 4, "max_length": 256}
    own_set = vectors.from_points(points, known, name="own texts", facts=facts)
    engine = WhatIf(divide(own_set))
    steps = chains.read("zca:eps=0.1")
    affine, origin = export.matrix_of(engine, steps, engine.full(steps))
    expected = engine.image(steps)
    np.testing.assert_allclose(affine.of_points(engine.validation), expected.image(expected.validation), atol=1e-9)
    assert origin.rows == len(engine.train) < len(texts) and "k-NN accuracy" in origin.words
    order = export.spec_of_model(own_set.facts)
    assert export.write_model(order, affine, origin, tmp_path / "model") <= posthoc_export.TOLERANCE
    encoded, image = encode(str(tmp_path / "model"), texts), affine.of_points(points.astype(np.float64))
    np.testing.assert_allclose(encoded, image, atol=1e-5 * np.linalg.norm(image, axis=1).max())
    job = export.request(order, affine, origin)
    key = queue.content_key(export.EXPORT, *job)
    assert work_here(export.EXPORT, key, *job).status == "done"
    assert export.EXPORTED.find(key).facts["deviation"] <= posthoc_export.TOLERANCE
    with pytest.raises(InputError, match="their model is unknown"):
        export.spec_of_model({"array": None})
