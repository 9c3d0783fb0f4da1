"""The watch in the trainers that people use, on the bundled model: induced collapses are found, healthy trainings are silent."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import isoviz
from isoviz import demo
from isoviz.errors import InputError
from isoviz.watch import Watch, WatchWarning
from tests import nightly

torch = pytest.importorskip("torch")
FOLDER = os.environ.get("ISOVIZ_WATCH_MODEL") or str(demo.bundled_model_dir("demo/tiny-bert"))
"""Set the variable to a folder with a real encoder (MiniLM) to run this file with it; minutes instead of seconds."""
STEPS, BATCH = 60, 16
OPTIONS: dict[str, Any] = {"warmup": 0, "measure_every": 10, "window": 160}
INDUCED = {"collapsing": 3e-4, "constant target": 3e-3, "learning rate": 3e-1, "healthy": 3e-4}


def texts(task: str = "similarity") -> pd.DataFrame:
    return pd.read_parquet(demo.rows_dir(task) / "train.parquet").sample(STEPS * BATCH, random_state=0)


def loss_of(kind: str, first: Any, second: Any) -> Any:
    """The contrastive loss of two views (healthy, or with a far too large learning rate), minus the uniformity of Wang and Isola
    (2020), or the distance from one constant vector."""
    if kind == "constant target":
        return ((first - 1) ** 2).mean()
    first, second = (torch.nn.functional.normalize(each, dim=1) for each in (first, second))
    if kind == "collapsing":
        return -torch.pdist(first).pow(2).mul(-2).exp().mean().log()
    return torch.nn.functional.cross_entropy(first @ second.T / 0.05, torch.arange(len(first)))


class Encoder(torch.nn.Module):
    """The bundled encoder under transformers' Trainer, in which a model returns its own loss."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        from transformers import AutoModel

        self.bert = AutoModel.from_pretrained(FOLDER)
        self.kind = kind

    def mean(self, input_ids: Any, attention_mask: Any) -> Any:
        states = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return (states * attention_mask[:, :, None]).sum(1) / attention_mask.sum(1, keepdim=True)

    def forward(self, input_ids: Any, attention_mask: Any, other_ids: Any, other_mask: Any) -> Any:
        first, second = self.mean(input_ids, attention_mask), self.mean(other_ids, other_mask)
        return {"loss": loss_of(self.kind, first, second), "vectors": first}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    read = texts()
    encoded = [
        tokenizer(list(read[name]), padding="max_length", truncation=True, max_length=24)
        for name in ("sentence1", "sentence2")
    ]
    return [
        {
            "input_ids": encoded[0]["input_ids"][row],
            "attention_mask": encoded[0]["attention_mask"][row],
            "other_ids": encoded[1]["input_ids"][row],
            "other_mask": encoded[1]["attention_mask"][row],
        }
        for row in range(len(read))
    ]


def in_transformers(watch: Watch, kind: str, rows: list[dict[str, Any]], folder: Path, **more: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    arguments = transformers_arguments(TrainingArguments, folder, kind, **more)
    trainer = Trainer(Encoder(kind), arguments, train_dataset=rows, eval_dataset=rows[:7])
    trainer.add_callback(watch)
    trainer.train()
    return trainer


def transformers_arguments(of: Any, folder: Path, kind: str, **more: Any) -> Any:
    given = {
        "output_dir": str(folder),
        "max_steps": STEPS,
        "per_device_train_batch_size": BATCH,
        "learning_rate": INDUCED[kind],
        "logging_steps": 10,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return of(**(given | more))


def in_sentence_transformers(
    watch: Watch, kind: str, folder: Path, evaluator: Any = None, make_loss: Any = None, **more: Any
) -> Any:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import modules

    first = modules.Transformer(FOLDER)
    model = SentenceTransformer(modules=[first, modules.Pooling(first.get_embedding_dimension(), "mean")], device="cpu")

    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any, labels: Any = None) -> Any:
            return loss_of(kind, *(self.model(each)["sentence_embedding"] for each in features))

    trainer = SentenceTransformerTrainer(
        model=model,
        args=transformers_arguments(SentenceTransformerTrainingArguments, folder, kind, **more),
        train_dataset=Dataset.from_pandas(texts()[["sentence1", "sentence2"]], preserve_index=False),
        loss=make_loss(model) if make_loss else Loss(),
        evaluator=evaluator,
    )
    trainer.add_callback(watch)
    trainer.train()
    return trainer


def in_lightning(watch: Watch, kind: str, rows: list[dict[str, Any]], folder: Path, **more: Any) -> Any:
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = Encoder(kind)

        def training_step(self, batch: Any, index: int) -> Any:
            return self.encoder(**batch)["loss"]

        def validation_step(self, batch: Any, index: int) -> None:
            self.encoder(**batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=INDUCED[kind])

    def collate(batch: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: torch.tensor([row[name] for row in batch]) for name in batch[0]}

    given = {"max_steps": STEPS, "logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        accelerator="cpu", enable_model_summary=False, callbacks=[watch.lightning()], default_root_dir=folder, **(given | more)
    )  # fmt: skip
    loaders = (torch.utils.data.DataLoader(part, batch_size=BATCH, collate_fn=collate) for part in (rows, rows[:7]))
    trainer.fit(Module(), *loaders)
    return trainer


@pytest.mark.parametrize("kind", nightly.cases(["collapsing", "healthy"], always=["collapsing"]))
def test_transformers(kind, rows, tmp_path):
    watch = Watch(on_collapse="log", **OPTIONS)
    trainer = in_transformers(watch, kind, rows, tmp_path)
    assert (watch.alarm is None) == (kind == "healthy"), watch.alarm
    logged = [line for line in trainer.state.log_history if "isotropy/mean_cosine" in line]
    assert logged and logged[0]["isotropy/n"] <= 160
    assert any("isotropy/collapsed" in line for line in trainer.state.log_history) == (kind != "healthy")
    assert not any(module._forward_hooks for module in trainer.model.modules())


@pytest.mark.parametrize("kind", nightly.cases(["collapsing", "healthy"], always=["collapsing"]))
def test_sentence_transformers(kind, tmp_path):
    watch = Watch(on_collapse="stop", **OPTIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer = in_sentence_transformers(watch, kind, tmp_path)
    collapsed = kind != "healthy"
    assert (watch.alarm is not None) == collapsed, watch.alarm
    assert (trainer.state.global_step < STEPS) == collapsed
    assert any(each.category is WatchWarning for each in caught) == collapsed


@pytest.mark.parametrize("kind", nightly.cases(["collapsing", "healthy"], always=["collapsing"]))
def test_lightning(kind, rows, tmp_path):
    watch = Watch(on_collapse="log", **OPTIONS)
    trainer = in_lightning(watch, kind, rows, tmp_path)
    assert (watch.alarm is None) == (kind == "healthy"), watch.alarm
    assert "isotropy/mean_cosine" in trainer.callback_metrics


def sizes(watch: Watch) -> set[int]:
    """Of the batches whose vectors the watch has kept."""
    return {len(rows) for rows in watch._rows}


def test_transformers_with_accumulation_evaluation_and_half_precision(rows, tmp_path):
    watch = Watch(on_collapse="log", **OPTIONS)
    more = {"gradient_accumulation_steps": 2, "eval_strategy": "steps", "eval_steps": 5, "bf16": True, "max_steps": 20}
    trainer = in_transformers(watch, "healthy", rows, tmp_path, **more)
    assert trainer.state.global_step == watch.steps == 20 and watch.alarm is None
    assert sizes(watch) == {BATCH} and watch.latest["isotropy/n"] == 160  # of each step its first batch, none of 7 rows


def test_a_loss_that_runs_the_model_in_parts(tmp_path):
    """Cached losses first run the model without gradients, then again in small parts inside the backward pass."""
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

    watch = Watch(on_collapse="log", **OPTIONS)
    cached = lambda model: CachedMultipleNegativesRankingLoss(model, mini_batch_size=8)  # noqa: E731
    in_sentence_transformers(watch, "healthy", tmp_path, make_loss=cached, max_steps=20)
    assert sizes(watch) == {8} and watch.steps == 20 and "isotropy/mean_cosine" in watch.latest


@pytest.mark.nightly
def test_lightning_with_accumulation_validation_and_half_precision(rows, tmp_path):
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    watch = Watch(on_collapse="log", **OPTIONS)
    logger = loggers.CSVLogger(tmp_path, "csv", "one")
    more = {"accumulate_grad_batches": 2, "precision": "bf16-mixed", "val_check_interval": 10, "max_steps": 20}
    in_lightning(watch, "healthy", rows, tmp_path, logger=logger, **more)
    assert sizes(watch) == {BATCH} and watch.steps == 20 and watch.latest["isotropy/n"] == 160
    logged = pd.read_csv(tmp_path / "csv" / "one" / "metrics.csv").dropna(subset="isotropy/mean_cosine")
    assert list(logged["step"]) == [10, 20]  # no step of the logger's own, every 50


def test_loggers_receive_the_measures(rows, tmp_path):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    received: list[dict[str, Any]] = []

    class Logger(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            received.append(dict(logs))

    arguments = transformers_arguments(TrainingArguments, tmp_path, "healthy")
    trainer = Trainer(Encoder("healthy"), arguments, train_dataset=rows[: 10 * BATCH], callbacks=[Logger()])
    arguments.max_steps = 10
    Watch(**OPTIONS).watch(trainer)
    trainer.train()
    assert "isotropy/isoscore_unbiased" in received[0]


def test_the_evaluator():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    from isoviz import metrics

    first = modules.Transformer(FOLDER)
    model = SentenceTransformer(modules=[first, modules.Pooling(first.get_embedding_dimension(), "mean")], device="cpu")
    sentences = list(dict.fromkeys(texts()["sentence1"]))[:80]
    values = isoviz.IsotropyEvaluator([*sentences, sentences[0]], name="probe")(model)
    expected = metrics.isoscore_unbiased(model.encode(sentences, batch_size=32))
    assert values["probe_isoscore_unbiased"] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(InputError, match="at least 2 different texts"):
        isoviz.IsotropyEvaluator(["a", "a"])


def test_an_encoder_decoder_is_read_at_its_encoder():
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_pretrained(str(demo.bundled_model_dir("demo/tiny-bart"))).train()
    watch = Watch()
    watch.attach(model)
    inputs = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 1]])
    mask = (inputs != 1).long()
    model(input_ids=inputs, attention_mask=mask, labels=torch.tensor([[4, 2], [5, 2]]))
    model.eval()
    states = model.get_encoder()(input_ids=inputs, attention_mask=mask).last_hidden_state
    expected = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    assert watch._fresh.shape == expected.shape == (2, model.config.d_model)
    assert torch.cosine_similarity(watch._fresh, expected.detach()).min() > 0.9  # they differ by dropout


def test_pooling_ignores_padding(rows):
    model = Encoder("healthy").eval()  # two forward passes agree
    batch = {name: torch.tensor([row[name] for row in rows[:8]]) for name in rows[0]}
    watch = Watch(pooling="mean")
    watch.attach(model.bert)
    vectors = model(**batch)["vectors"].detach()
    assert torch.allclose(watch._fresh, vectors, atol=1e-6)  # of the first forward pass, not of the second view
    last = Watch(pooling="last")
    last.attach(model.bert)
    model(**batch)
    states = model.bert(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
    ends = batch["attention_mask"].sum(1) - 1
    assert torch.allclose(last._fresh, states[torch.arange(8), ends].detach(), atol=1e-6)


def test_an_unknown_layer_names_those_nearby():
    with pytest.raises(
        InputError, match=r"layer 'bert.encoder.layer.9' is not in this model; for example: bert.encoder"
    ):
        Watch(layer="bert.encoder.layer.9").attach(Encoder("healthy"))
    with pytest.raises(InputError, match="found no encoder in Linear: name the module with layer="):
        Watch().attach(torch.nn.Linear(2, 2))


def test_a_hook_that_never_fires_is_reported_once(rows):
    model = Encoder("healthy").train()
    model.unused = torch.nn.Linear(2, 2)
    watch = Watch(layer="unused")
    watch.attach(model)
    with pytest.warns(WatchWarning, match="no vectors at step 1: the hook did not fire; name another layer=") as caught:
        for _ in range(3):
            watch.step()
    assert len(caught) == 1


def test_a_classifier_is_tested_for_alike_vectors_only():
    from transformers import AutoModelForSequenceClassification

    watch = Watch()
    classifier = AutoModelForSequenceClassification.from_pretrained(FOLDER, num_labels=2)
    for model in (classifier, torch.nn.Sequential(classifier)):  # as by a wrapper for several GPUs
        watch.attach(model)
        assert list(watch._test.tests) == ["alike"]
    watch.attach(Encoder("healthy"))
    assert list(watch._test.tests) == ["alike", "few"]


def test_several_processes_cannot_stop_one_of_them():
    class Arguments:
        world_size = 2

    with pytest.raises(InputError, match="on_collapse='stop' works in one process"):
        Watch(on_collapse="stop").on_train_begin(Arguments(), None, None)
