"""Isotropy penalties as losses of sentence-transformers: per text column, before Normalize, and the documented example."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from isoviz import demo, methods
from isoviz.errors import InputError

torch = pytest.importorskip("torch")
FOLDER = str(demo.bundled_model_dir("demo/tiny-bert"))
WATCH = Path(__file__).parent.parent / "docs" / "watch.md"
TEXTS = [["a red cat sat", "dogs run"], ["the cat", "a dog runs home"], ["rain", "snow on the old house"]]


def encoder(normalise: bool) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    first = modules.Transformer(FOLDER)
    parts = [first, modules.Pooling(first.get_embedding_dimension(), "mean")]
    return SentenceTransformer(modules=parts + [modules.Normalize()] * normalise, device="cpu")


def features_of(model: Any, columns: int) -> list[dict[str, Any]]:
    return [model.preprocess(texts) for texts in TEXTS[:columns]]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("slug", ["gor", "sigreg", "vicreg"])
def test_the_penalty_is_the_mean_of_those_of_the_columns(slug: str, columns: int, normalise: bool) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from isoviz.losses import Regularised

    model = encoder(normalise).eval()  # no dropout: it can be encoded again
    loss = MultipleNegativesRankingLoss(model)
    terms = Regularised(loss, method=slug, lam=0.5)(features_of(model, columns))
    kind = methods.get(slug)
    method = kind(kind.Params(lam=0.5, **({"scale": True} if slug == "sigreg" else {})))
    method.attach(SimpleNamespace(head_width=128, num_layers=0))
    expected = 0.0
    for features in features_of(model, columns):
        for module in list(model)[:2]:  # up to the pooling
            features = module(features)
        expected += (
            float(method.penalties(SimpleNamespace(pooled=features["sentence_embedding"].detach()))[slug]) / columns
        )
    assert float(terms[slug].detach()) == pytest.approx(expected, rel=1e-4) and expected > 0
    assert float(terms["MultipleNegativesRankingLoss"].detach()) == pytest.approx(
        float(loss(features_of(model, columns), None).detach()), rel=1e-5
    )
    terms[slug].backward()
    assert sum(float(weight.grad.abs().sum()) for weight in model.parameters() if weight.grad is not None) > 0
    with torch.no_grad():
        assert set(Regularised(loss, method=slug)(features_of(model, columns))) == {"MultipleNegativesRankingLoss"}


def test_what_cannot_be_regularised_is_refused() -> None:
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss, CoSENTLoss

    from isoviz.losses import Regularised

    model = encoder(False)
    for loss, options, words in (
        (CachedMultipleNegativesRankingLoss(model), {}, "not a cached one"),
        (torch.nn.MSELoss(), {}, "with a SentenceTransformer"),
        (CoSENTLoss(model), {"method": "isobn"}, "gor"),
        (CoSENTLoss(model), {"method": "gor", "on": "tokens"}, "pooled vectors only"),
        (CoSENTLoss(model), {"method": "gor", "lamda": 1.0}, "lam"),
    ):
        with pytest.raises(InputError, match=words):
            Regularised(loss, **options)


def test_the_documented_example_makes_a_model_more_isotropic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = next(
        code for code in re.findall(r"```python\n(.*?)```", WATCH.read_text(), re.S) if "losses.Regularised" in code
    )
    rows = pd.read_parquet(demo.rows_dir("similarity") / "train.parquet").rename(columns={"label": "score"})
    rows[["sentence1", "sentence2", "score"]].to_parquet(tmp_path / "pairs.parquet")
    encoder(True).save(str(tmp_path / "encoder"))
    monkeypatch.chdir(tmp_path)
    figures = {}
    for lam in ("0.0", "1.0"):
        code = example.replace("sentence-transformers/all-MiniLM-L6-v2", "encoder").replace("lam=1.0", f"lam={lam}")
        code = code.replace(
            "max_steps=100", 'max_steps=30, learning_rate=3e-4, report_to="none", use_cpu=True, save_strategy="no"'
        )
        names: dict[str, Any] = {}
        exec(code, names)
        logged = names["trainer"].state.log_history
        assert any("gor" in entry and "CoSENTLoss" in entry for entry in logged)
        figures[lam] = next(entry["eval_mean_cosine"] for entry in reversed(logged) if "eval_mean_cosine" in entry)
    assert figures["1.0"] < figures["0.0"] - 0.02
