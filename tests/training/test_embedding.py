"""Embedding models: losses and rankings against other libraries and plain loops, splits that share no text, saving, resume."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file

from isoviz import methods, posthoc, tasks, vectors
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.models.objectives import Objective
from isoviz.posthoc.export import Origin, require_affine
from isoviz.runs import launch, planning
from isoviz.tasks import own
from isoviz.tasks.protocol import OwnTask
from isoviz.training import heads, weights
from isoviz.training.batches import Encoded
from isoviz.training.evaluation import EncodedSplits, Evaluator
from isoviz.training.heads import Embedding, ranking
from isoviz.training.reload import build, reload
from isoviz.whatif import export
from isoviz.whatif.texts import encoded
from tests import tiny
from tests.training import running


def vectors_of(rows: int, columns: int, h: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows * columns, h, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("columns", [2, 3])
def test_infonce_is_a_plain_loop_and_the_librarys_without_duplicates(columns: int) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    vectors = vectors_of(5, columns)
    codes = torch.arange(5 * columns)
    ours = Objective("infonce", columns, 0.05, known=[(int(r[0]), int(r[1])) for r in codes.view(5, columns)])
    library = MultipleNegativesRankingLoss(None, scale=20.0)
    theirs = library.compute_loss_from_embeddings(list(vectors.unflatten(0, (-1, columns)).unbind(1)), None)
    assert float(ours(vectors, codes)) == pytest.approx(float(theirs), rel=1e-6)
    # row 1 has row 0's query, row 2 row 0's document, row 3's document is its query, row 4's negative is row 0's document
    codes = codes.view(5, columns).clone()
    codes[1, 0], codes[2, 1], codes[3, 1] = codes[0, 0], codes[0, 1], codes[3, 0]
    if columns == 3:
        codes[4, 2] = codes[0, 1]
    known = {(int(row[0]), int(row[1])) for row in codes}
    unit = torch.nn.functional.normalize(vectors, dim=1).view(5, columns, -1)
    total = 0.0
    for i in range(5):
        kept = []
        for j, place in itertools.product(range(5), range(1, columns)):
            query, document = int(codes[i, 0]), int(codes[j, place])
            if i == j or ((query, document) not in known and query != document):
                kept.append(float(unit[i, 0] @ unit[j, place]) / 0.05)
        own_score = float(unit[i, 0] @ unit[i, 1]) / 0.05
        total += math.log(sum(math.exp(score) for score in kept)) - own_score
    masked = Objective("infonce", columns, 0.05, known=known)
    assert float(masked(vectors, codes.flatten())) == pytest.approx(total / 5, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "name"), [("cosent", "CoSENTLoss"), ("angle", "AnglELoss"), ("cosine", "CosineSimilarityLoss")]
)
def test_losses_of_scored_pairs_are_the_librarys(loss: Any, name: str) -> None:
    from sentence_transformers.sentence_transformer import losses

    vectors, scores = vectors_of(6, 2).float(), torch.tensor([0.0, 5.0, 2.5, 2.5, 1.0, 4.0])
    ours = Objective(loss, 2, 0.05, scale=(0, 5))(vectors, scores.repeat_interleave(2))
    scaled = scores / 5 if loss == "cosine" else scores
    theirs = getattr(losses, name)(None).compute_loss_from_embeddings([vectors[::2], vectors[1::2]], scaled)
    assert float(ours) == pytest.approx(float(theirs), rel=1e-6)


@pytest.mark.parametrize("loss", ["infonce", "cosent"])
def test_matryoshka_is_the_librarys_with_equal_weights(loss: Any) -> None:
    from sentence_transformers.sentence_transformer import losses

    vectors, scores = vectors_of(6, 2).float(), torch.tensor([0.0, 5.0, 2.5, 2.5, 1.0, 4.0])
    columns = iter(vectors.unflatten(0, (-1, 2)).unbind(1))

    class Stub(torch.nn.Module):
        def forward(self, features: Any, *_: Any) -> dict[str, torch.Tensor]:
            return {"sentence_embedding": next(columns)}

        def get_embedding_dimension(self) -> int:
            return 6

    inner = losses.MultipleNegativesRankingLoss if loss == "infonce" else losses.CoSENTLoss
    library = losses.MatryoshkaLoss(Stub(), inner(stub := Stub()), [6, 4, 2], [1 / 3] * 3)  # type: ignore[arg-type]
    library.model, library.loss.model = stub, stub
    theirs = library([{}, {}], scores)
    labels = torch.arange(12) if loss == "infonce" else scores.repeat_interleave(2)
    assert float(Objective(loss, 2, 0.05, widths=(4, 2))(vectors, labels)) == pytest.approx(float(theirs), rel=1e-5)


def test_a_run_reports_score_and_isotropy_at_each_width(tiny_models: tiny.TinyModels, tmp_path: Path) -> None:
    from isoviz import metrics

    cfg = config(tiny_models("bert"), write(tmp_path / "data", 2), 2, widths="4,8", epochs=1)
    assert cfg.widths == "8, 4"
    events = running.run(cfg, tmp_path / "run")
    finished = running.of(events, "finished")[0]
    model, head = reload(cfg, weights.newest(tmp_path / "run"))
    frame = tasks.load(tasks.get(cfg.task, cfg.own), cfg.data).validation
    texts = frame[["first", "second"]].to_numpy().ravel().tolist()
    with torch.no_grad():
        vectors = model(**head.tokenizer(texts, padding=True, return_tensors="pt")).head.numpy()
    codes = pd.factorize(np.array(texts))[0].reshape(-1, 2)
    for width in (4, 8):
        cut = vectors[:, :width]
        assert finished.metrics[f"ndcg_{width}"] == pytest.approx(ranking(cut, codes)[1]["ndcg"], abs=1e-5)
        cloud = finished.isotropy.clouds[f"head_{width}"]
        assert cloud.d == width and cloud.number("isoscore") == pytest.approx(metrics.isoscore(cut[::2]), abs=1e-4)
    with pytest.raises(InputError, match="below the 16"):
        config(tiny_models("bert"), tmp_path / "data", 2, widths="16")
    with pytest.raises(InputError, match="no embedding task"):
        planning.expand(["demo/tiny-bert"], ["demo/sentiment"], [("baseline", {})], [0], widths="8")


def test_correlations_are_those_of_sentence_transformers() -> None:
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from isoviz.tasks import metrics

    vectors, scores = vectors_of(12, 2), (np.arange(12) % 6 / 5).tolist()
    texts = [str(row) for row in range(24)]

    class Encoder(torch.nn.Module):
        similarity_fn_name = "cosine"
        model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *given: None)

        def encode(self, batch: list[str], **_: Any) -> torch.Tensor:
            return vectors[[int(text) for text in batch]]

    theirs = EmbeddingSimilarityEvaluator(texts[::2], texts[1::2], scores, main_similarity="cosine", write_csv=False)
    expected = theirs(Encoder())  # type: ignore[arg-type]
    head = SimpleNamespace(task=SimpleNamespace(label="score"), together=2)
    answers = Embedding.answers(head, pd.DataFrame(), None, list(vectors.numpy())).values  # type: ignore[arg-type]
    ours = metrics.compute(["pearson", "spearman"], scores, answers, "embedding")
    assert ours["pearson"] == pytest.approx(expected["pearson_cosine"])
    assert ours["spearman"] == pytest.approx(expected["spearman_cosine"])


@pytest.mark.parametrize(("short", "places"), [(1, 360), (6, 198), (11, 63), (12, 36)])
def test_a_batch_of_short_and_long_texts_is_encoded_without_the_padding(
    tiny_models: tiny.TinyModels, short: int, places: int
) -> None:
    """Each text's vectors are those of the text alone, whatever shares its batch."""
    from tests.methods.test_conformance import built, made

    model = built(tiny_models, made("baseline"), kind="embedding").eval()
    lengths = torch.tensor([3] * short + [30] * (12 - short))[torch.randperm(12)]
    mask = (torch.arange(32)[None] < lengths[:, None]).long()
    ids = torch.randint(5, 45, mask.shape) * mask
    seen: list[int] = []
    handle = model.network.get_input_embeddings().register_forward_hook(
        lambda module, inputs, output: seen.append(inputs[0].numel())
    )
    reps = model.represent(ids, mask)
    handle.remove()
    assert sum(seen) == places
    assert reps.last_hidden.shape == (12, 32, 16) and torch.equal(reps.attention_mask, mask)
    for row, length in enumerate(lengths.tolist()):
        alone = model.represent(ids[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(reps.pooled[row], alone.pooled[0], rtol=1e-5, atol=1e-5)
        for layer, expected in zip(reps.hidden_states, alone.hidden_states, strict=True):
            torch.testing.assert_close(layer[row, :length], expected[0], rtol=1e-5, atol=1e-5)


def test_rankings_are_those_of_sentence_transformers_and_ties_are_chance() -> None:
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    rng = np.random.default_rng(0)
    codes = np.stack([np.arange(30) // 2, 100 + rng.integers(0, 25, 30), 200 + rng.integers(0, 20, 30)], axis=1)
    of_code = {int(code): rng.standard_normal(8) for code in np.unique(codes)}
    vectors = np.array([of_code[int(code)] for code in codes.ravel()], dtype=np.float32)
    ranks, scores = ranking(vectors, codes)

    class Encoder:
        similarity_fn_name = "cosine"
        model_card_data = None

    def encode(texts: list[str], **_: Any) -> torch.Tensor:
        return torch.tensor(np.array([of_code[int(text)] for text in texts]), dtype=torch.float32)

    queries = {str(code): str(code) for code in np.unique(codes[:, 0])}
    corpus = {str(code): str(code) for code in np.unique(codes[:, 1:])}
    relevant: dict[str, set[str]] = {}
    for row in codes:
        relevant.setdefault(str(row[0]), set()).add(str(row[1]))
    evaluator = InformationRetrievalEvaluator(
        queries, corpus, relevant, ndcg_at_k=[10], mrr_at_k=[10], precision_recall_at_k=[1, 10], show_progress_bar=False
    )
    from sentence_transformers.util import cos_sim

    similar = cos_sim(encode(list(queries)), encode(list(corpus))).numpy()
    hits = [[{"corpus_id": list(corpus)[d], "score": float(row[d])} for d in np.argsort(-row)] for row in similar]
    theirs = evaluator.compute_metrics(hits)
    assert scores["ndcg"] == pytest.approx(theirs["ndcg@k"][10], abs=1e-6)
    assert scores["mrr"] == pytest.approx(theirs["mrr@k"][10], abs=1e-6)
    assert scores["recall1"] == pytest.approx(theirs["recall@k"][1], abs=1e-6)
    assert scores["recall10"] == pytest.approx(theirs["recall@k"][10], abs=1e-6)
    places = [[hit["corpus_id"] for hit in hits[list(queries).index(str(row[0]))]].index(str(row[1])) for row in codes]
    assert ranks == [place + 1 for place in places]
    collapsed_ranks, collapsed = ranking(np.ones_like(vectors), codes)
    count = len(corpus)
    assert set(collapsed_ranks) == {(count + 1) / 2}
    assert collapsed["recall10"] == pytest.approx(10 / count) and collapsed["recall1"] == pytest.approx(1 / count)


def write(folder: Path, columns: int, rows: int = 40, scored: bool = False) -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    names = ("anchor", "positive", "negative")[:columns]
    table = {name: [" ".join(rng.choice(tiny.WORDS, 4)) + f" w{row % 10}" for row in range(rows)] for name in names}
    table["positive"] = [table["positive"][row // 2] for row in range(rows)]  # two rows share a document
    if scored:
        table["score"] = (np.arange(rows) % 5) / 4
    pd.DataFrame(table).to_csv(folder / "train.csv", index=False)
    return folder


def of_own(folder: Path, columns: int, label: str | None = None) -> OwnTask:
    third = "negative" if columns == 3 else None
    kind: Any = "embedding" if label else None
    return own.completed(folder, OwnTask(text="anchor", second="positive", third=third, label=label, kind=kind))


@pytest.mark.parametrize("columns", [2, 3])
def test_no_text_is_on_both_sides_of_a_split(tmp_path: Path, columns: int) -> None:
    task = tasks.get("own", of_own(write(tmp_path, columns), columns))
    assert (
        task.kind == "embedding"
        and task.metrics[0] == "ndcg"
        and task.columns == ("first", "second", "third")[:columns]
    )
    data = tasks.load(task, tmp_path)
    sides = [set(frame[list(task.columns)].to_numpy().ravel()) for frame in (data.train, data.validation)]
    assert not sides[0] & sides[1]
    assert 4 <= len(data.validation) <= 8  # a fifth of 40


def test_columns_are_guessed_by_sentence_transformers_names(tmp_path: Path) -> None:
    guessed = own.guess_columns(own.preview(write(tmp_path, 3)))
    assert guessed == {"text": "anchor", "second": "positive", "third": "negative", "label": None}
    for answer, second, label in (("In the old town hall.", "answer", None), ("yes", None, "answer")):
        rows = ({"question": "Where do they meet tonight?", "answer": answer},)
        guessed = own.guess_columns(own.Preview(("question", "answer"), rows, True, {}))
        assert guessed == {"text": "question", "second": second, "third": None, "label": label}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": "anchor", "label": None}, "second"),
        (
            {"text": "anchor", "second": "positive", "third": "negative", "label": "score", "kind": "embedding"},
            "without a label",
        ),
        ({"text": "anchor", "label": None, "kind": "regression"}, "labels"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    folder = write(tmp_path, 3, scored=True)
    with pytest.raises(InputError, match=words):
        tasks.get("own", own.completed(folder, OwnTask(**changes)))


def config(model: Path, folder: Path, columns: int, label: str | None = None, **changes: Any) -> RunConfig:
    method = changes.pop("method", ("baseline", {}))
    plan: dict[str, Any] = {
        "data": str(folder),
        "own": of_own(folder, columns, label),
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 5e-3,
    }
    return planning.expand([str(model)], ["own"], [method], [0], **plan | changes)[0]


@pytest.mark.parametrize(
    ("columns", "label", "method", "family", "changes"),
    [
        (2, "score", ("isobn", {}), "bert", {}),
        (3, None, ("gor", {"lam": 1.0}), "bert", {"micro_batch": 3}),
        (2, None, ("baseline", {}), "bert", {"lora_rank": 4, "learning_rate": 0.05}),
        (3, None, ("baseline", {}), "gpt2", {}),
    ],
)
def test_a_run_learns_and_its_folder_gives_its_vectors(
    tiny_models: tiny.TinyModels,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    label: str | None,
    method: Any,
    family: str,
    changes: dict[str, Any],
) -> None:
    from sentence_transformers import SentenceTransformer

    from isoviz.exploring import encoders
    from isoviz.models import extract, folding
    from isoviz.models.extract import offered_poolings

    folder = write(tmp_path / "data", columns, scored=bool(label))
    cfg = config(tiny_models(family), folder, columns, label, method=method, prefix="w1 | w2", **changes)
    events = running.run(cfg, tmp_path / "run")
    finished = running.of(events, "finished")[0]
    assert finished.metrics[tasks.get("own", cfg.own).primary] is not None
    losses = [event.loss for event in running.of(events, "evaluated")]
    assert len(losses) == 3 and all(map(math.isfinite, losses))
    steps = running.of(events, "stepped")
    assert steps[-1].losses["task"] < steps[0].losses["task"]
    model, head = reload(cfg, weights.newest(tmp_path / "run"))
    folding.save_embedder(model, head.tokenizer, tmp_path / "saved", ("w1", "w2"), cfg.max_length)
    texts = ["w3 w4 w5", "w6"]
    encoder = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    for words, encode in (("w1", encoder.encode_query), ("w2", encoder.encode_document)):
        batch = head.tokenizer([f"{words} {text}" for text in texts], padding=True, return_tensors="pt")
        with torch.no_grad():
            expected = torch.nn.functional.normalize(model(**batch).head, dim=1)
        np.testing.assert_allclose(encode(texts), expected.numpy(), atol=2e-6)
    run = encoders.FinishedRun(model, head.tokenizer, cfg.task, False, ("w1", "w2"))
    monkeypatch.setattr(encoders, "load_run", lambda name: run)
    monkeypatch.setattr(encoders, "resolve", lambda name: SimpleNamespace(fingerprint=""))
    with encoders.opened("run:it") as (source, _):
        assert offered_poolings(source)[0][0] == "sentence"
        np.testing.assert_allclose(
            extract.encode(source, texts, prompt="query"), encoder.encode_query(texts), atol=2e-6
        )
    search = vectors.from_texts(texts)
    search = replace(search, columns=search.columns.assign(group=["query", "document"]))
    expected = np.stack([encoder.encode_query(texts)[0], encoder.encode_document(texts)[1]])
    of_run = encoded(search, "run:it")
    np.testing.assert_allclose(of_run.points, expected, atol=2e-6)
    chain = posthoc.zca(eps=0.1).fit(np.random.default_rng(0).normal(size=(90, expected.shape[1])))
    origin = Origin("zca:eps=0.1", "random", "", 90, "all")
    export.write_model(export.spec_of_model(of_run.facts), require_affine(chain), origin, tmp_path / "chained")
    chained = SentenceTransformer(str(tmp_path / "chained"), device="cpu").encode_query(texts)
    np.testing.assert_allclose(chained, chain.transform(encoder.encode_query(texts)), atol=1e-4)


def test_equal_texts_are_encoded_once(tiny_models: tiny.TinyModels, tmp_path: Path) -> None:
    cfg = config(tiny_models("bert"), write(tmp_path, 2), 2)
    task, source = tasks.get(cfg.task, cfg.own), sources.resolve(cfg.model)
    head = heads.head_for(task, load_tokenizer(source), cfg)
    model, _ = build(cfg, source, head, False)
    data = tasks.load(task, cfg.data)
    frame = data.train.assign(second=data.train["second"].iloc[[0, 1] * (len(data.train) // 2)].to_numpy())
    rows = EncodedSplits(replace(data, validation=frame), head, cfg)
    head.prepare(model, rows.train)
    read: list[int] = []
    handle = model.register_forward_hook(lambda module, inputs, output: read.append(len(output.head)))
    found = Evaluator(model, head, rows, Accelerator(cpu=True), lambda: None).validate(3)
    handle.remove()
    texts = frame[["first", "second"]].to_numpy().ravel().tolist()
    assert sum(read) == len(set(texts)) < len(texts) and len(found.head) == 3
    with torch.no_grad():
        expected = [model(**head.tokenizer([text], return_tensors="pt")).head[0].numpy() for text in texts]
    np.testing.assert_allclose(np.stack(found.predictions), np.stack(expected), atol=1e-5)
    encoded = Encoded({"input_ids": [[1, 2], [3], [1, 2], [3], [4], [1, 2]]}, np.zeros(6), np.arange(6))
    assert encoded.originals(np.array([False, False, True, False, False, True])).tolist() == [2, 1, 2, 1, 4, 5]


@pytest.mark.parametrize(
    ("columns", "label", "changes"),
    [
        pytest.param(2, "score", {}, marks=pytest.mark.nightly),
        pytest.param(3, None, {"batching": "bucketed"}, marks=pytest.mark.nightly),
        (3, None, {"micro_batch": 3, "widths": "8"}),
        pytest.param(2, "score", {"micro_batch": 3}, marks=pytest.mark.nightly),
    ],
)
def test_a_run_stopped_within_an_epoch_goes_on_as_if_it_had_not(
    tiny_models: tiny.TinyModels, tmp_path: Path, columns: int, label: str | None, changes: dict[str, Any]
) -> None:
    cfg = config(tiny_models("bert"), write(tmp_path / "data", columns, scored=bool(label)), columns, label, **changes)
    whole = running.run(cfg, tmp_path / "whole")
    running.run(cfg, tmp_path / "parts", running.at_step(2))
    rest = running.run(cfg, tmp_path / "parts", resume=True)
    assert running.of(rest, "finished")[0].metrics == running.of(whole, "finished")[0].metrics
    one, other = (load_file(weights.newest(tmp_path / name) / "model.safetensors") for name in ("whole", "parts"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_penalties_are_those_of_each_column(tiny_models: tiny.TinyModels) -> None:
    """Of one row alone, a pair is no cloud: nothing pushes its two texts apart."""
    from tests.methods.test_conformance import built, sentences

    model = built(tiny_models, methods.get("gor")(methods.get("gor").Params(lam=1.0)), kind="embedding").eval()
    outputs = model(**sentences(rows=2, kind="embedding"), penalise=True)
    assert float(outputs.terms["gor"].detach()) == 0
    outputs = model(**sentences(rows=8, kind="embedding"), penalise=True)
    parts = [model.hooks.penalties(outputs.reps.column(first, 2))["gor"] for first in (0, 1)]
    assert float(outputs.terms["gor"].detach()) == pytest.approx(float(sum(parts).detach()) / 2)  # type: ignore[union-attr]
    joint = model.hooks.penalties(outputs.reps)["gor"]
    assert abs(float(joint.detach()) - float(outputs.terms["gor"].detach())) > 1e-4
    batch = sentences(rows=2, kind="embedding")
    repeated = {name: value.repeat(3, *[1] * (value.dim() - 1)) for name, value in batch.items()}
    outputs = model(**repeated, penalise=True)
    of_columns, of_both = (
        torch.autograd.grad(term, outputs.reps.pooled, retain_graph=True)[0][0::2]
        for term in (outputs.terms["gor"], model.hooks.penalties(outputs.reps)["gor"])
    )
    apart = (outputs.reps.pooled[0::2] - outputs.reps.pooled[1::2]).detach()
    assert (of_columns * apart).abs().max() < 1e-6 < 1e-3 < (of_both * apart).abs().max(), "a pair is not pushed apart"


def test_what_would_be_silently_wrong_is_refused(tmp_path: Path, tiny_models: tiny.TinyModels) -> None:
    plan = {"models": ["demo/tiny-bert"], "tasks": ["demo/sts"], "seeds": [0]}
    for changes, words in (
        ({"methods": [("baseline", {})], "loss": "infonce"}, "has scores"),
        ({"methods": [("cosreg", {"on": "output"})]}, "do not have"),
        ({"methods": [("simcse", {})]}, "does not work"),
        ({"methods": [("baseline", {})], "tasks": ["demo/sentiment"], "loss": "cosent"}, "no embedding task"),
    ):
        with pytest.raises(InputError, match=words):
            planning.expand(**plan | changes)
    folder = write(tmp_path, 2)
    with pytest.raises(InputError, match="at least 2"):
        config(tiny_models("bert"), folder, 2, batch_size=1)
    with pytest.raises(InputError, match="one process"):
        launch.resolve({"processes": 2, "micro_batch": 8}, None)


def test_stored_setups_keep_their_keys() -> None:
    key = RunConfig(task="own", own=OwnTask(text="a", label="b")).setup_key()
    assert "third" not in key and "temperature" not in key and "widths" not in key and '"loss"' not in key
