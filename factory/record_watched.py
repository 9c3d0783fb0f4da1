"""Records the bundled watched trainings: `python -m factory.record_watched [--out DIR]`. About a minute on one core.

The bundled encoder under SentenceTransformerTrainer, on pairs of paraphrases: once with a contrastive loss, whose other texts of the
batch push vectors apart, and once with a loss that only pulls pairs together, under which all vectors come to point the same way.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Final

import isoviz
from isoviz import demo

BATCH, STEPS, SEED = 32, 300, 0
PARAPHRASES: Final = 3.0
"""Smallest similarity, of 5, of a pair."""


def record(name: str, title: str, loss_name: str, out: Path) -> None:
    """Train once and write `NAME.jsonl`."""
    import pandas as pd
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer import losses, modules
    from transformers import set_seed

    set_seed(SEED)
    first = modules.Transformer(str(demo.bundled_model_dir("demo/tiny-bert")), max_seq_length=48)
    pooling = modules.Pooling(first.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[first, pooling], device="cpu")
    rows = pd.read_parquet(demo.rows_dir("similarity") / "train.parquet")
    pairs = rows[rows["label"] >= PARAPHRASES][["sentence1", "sentence2"]]
    loss: Any
    if loss_name == "contrastive":
        loss = losses.MultipleNegativesRankingLoss(model)
    else:
        loss, pairs = losses.CosineSimilarityLoss(model), pairs.assign(score=1.0)
    with tempfile.TemporaryDirectory() as folder:
        trainer = SentenceTransformerTrainer(
            model=model,
            args=Arguments(
                output_dir=folder,
                max_steps=STEPS,
                per_device_train_batch_size=BATCH,
                learning_rate=6e-4,
                warmup_steps=20,
                dataloader_drop_last=True,
                seed=SEED,
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_pandas(pairs, preserve_index=False),
            loss=loss,
        )
        file = out / f"{name}.jsonl"
        file.unlink(missing_ok=True)
        trainer.add_callback(
            isoviz.Watch(store=file, name=title, warmup=20, measure_every=5, window=960, on_collapse="log")
        )
        trainer.train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=demo.WATCHED)
    out = parser.parse_args().out
    record("healthy", "Contrastive loss, other texts as negatives", "contrastive", out)
    record("collapsing", "Pairs pulled together, no negatives", "pull", out)


if __name__ == "__main__":
    main()
