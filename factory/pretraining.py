"""Shared by the pretraining of both bundled models: the loop, the folder, the record, the command line.

Each model's `Recipe` is a dataclass of all that decides its result.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def begin(recipe: Any) -> None:
    """Set threads and seed; from here on the result depends only on the recipe, the library versions and the type of
    machine."""
    import torch

    torch.set_num_threads(recipe.threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(recipe.seed)


def before_training(
    folder: Path, seed: int, build: Callable[[dict[str, Any], PreTrainedTokenizerBase], PreTrainedModel]
) -> PreTrainedModel:
    """The network of a pretrained directory as it was before its first step, with weights of another seed.

    Args:
        build: from the recorded recipe and the tokenizer.
    """
    import torch
    from transformers import AutoTokenizer

    recipe = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))["recipe"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1000 + seed)
        return build(recipe, tokenizer)


def encode(tokenizer: Any, texts: Iterable[tuple[str, Sequence[str]]]) -> Iterator[list[list[int]]]:
    """The token ids of each text's sentences, without special tokens."""
    texts = list(texts)
    sentences = [sentence for _, text in texts for sentence in text]
    encodings = tokenizer.backend_tokenizer.encode_batch_fast(sentences, add_special_tokens=False)
    ids = iter([encoding.ids for encoding in encodings])
    return ([next(ids) for _ in text] for _, text in texts)


def train(
    model: PreTrainedModel,
    recipe: Any,
    rate: Callable[[int], float],
    losses: Callable[[], tuple[torch.Tensor, dict[str, torch.Tensor], int]],
    check: Callable[[], dict[str, Any]],
    log_every: int,
    check_every: int,
) -> dict[str, Any]:
    """Trains in place with AdamW, the gradient's norm cut at 1.

    Args:
        rate: the share of the peak learning rate in a step, counted from 0.
        losses: the loss of the next batch, named values for the log, and the number of tokens read.
        check: measures the network on held-out text.

    Returns:
        `curve` (one entry every `log_every` steps, with `check` every `check_every`), `tokens` and `seconds`.
    """
    import torch

    # vectors (biases, layer norms) do not decay
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=recipe.learning_rate,
        betas=(0.9, 0.98),
        fused=True,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=recipe.precision == "bf16")
    curve: list[dict[str, Any]] = []
    window: list[dict[str, float]] = []
    tokens, began = 0, time.perf_counter()
    for step in range(1, recipe.steps + 1):
        model.train()
        with autocast:
            loss, logged, count = losses()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        tokens += count
        window.append({name: value.item() for name, value in logged.items()})
        last = step == recipe.steps
        if step % log_every == 0 or last:
            entry: dict[str, Any] = {"step": step, "tokens": tokens, "seconds": round(time.perf_counter() - began, 1)}
            entry |= {name: round(float(np.mean([values[name] for values in window])), 4) for name in logged}
            window.clear()
            if step % check_every == 0 or last:
                model.eval()
                with torch.no_grad(), autocast:
                    entry |= check()
            curve.append(entry)
            print(json.dumps(entry), file=sys.stderr, flush=True)
    return {"curve": curve, "tokens": tokens, "seconds": round(time.perf_counter() - began, 1)}


def finish(
    out: Path,
    recipe: Any,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: list[tuple[str, Any]],
    began: float,
    training: Callable[[], dict[str, Any]],
) -> None:
    """Runs the training and writes network, tokenizer and record to `out`.

    Args:
        texts: kind and sentences of each text.
        began: `time.perf_counter()` at the start of the preparation.
    """
    prepared = round(time.perf_counter() - began, 1)
    print(f"{len(texts)} texts, {len(tokenizer)} pieces, {model.num_parameters()} parameters", file=sys.stderr)
    measured = training()
    save(model, tokenizer, out)
    write_record(out, recipe, model, texts, prepare_seconds=prepared, **measured)


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, out: Path) -> None:
    """A transformers directory: weights in half precision, to be loaded (and fine-tuned) in float32."""
    out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(out)
    path = out / "config.json"
    config = json.loads(path.read_text())
    config["dtype"] = "float32"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(out)


def write_record(out: Path, recipe: Any, model: PreTrainedModel, texts: list[tuple[str, Any]], **measured: Any) -> None:
    """`pretraining.json`: the recipe, the weights' digest, what the text was, the versions, and what was measured.

    Args:
        texts: kind and sentences of each text.
    """
    import tokenizers
    import torch
    import transformers

    kinds = [kind for kind, _ in texts]
    record = {
        "recipe": asdict(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "sha256": hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest(),
        "text": {
            "texts": len(texts),
            "sentences": sum(len(text) for _, text in texts),
            "words": sum(len(sentence.split()) for _, text in texts for sentence in text),
            "kinds": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
        },
        **measured,
    }
    (out / "pretraining.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def command(
    program: str,
    about: str | None,
    recipe: Callable[..., Any],
    pretrain: Callable[[Any, Path], None],
    numbers: Iterable[str],
    arguments: list[str] | None = None,
) -> None:
    """A script's command line.

    Args:
        recipe: the class; options that are not given have its defaults.
        numbers: its whole-number fields that are options.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    defaults = recipe()
    for name in numbers:
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    parser.add_argument("--precision", choices=("bf16", "no"), default=defaults.precision)
    options = vars(parser.parse_args(arguments))
    out = options.pop("out")
    pretrain(recipe(**options), out)
