"""Shared by the pretraining of both bundled models: the loop, the folder, the record, the command line.

Each model is a module with a `Recipe`, a dataclass of all that decides its result, and `new_model`, its network before the first step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Specials:
    """Ids of a vocabulary's special tokens, and its size. `cls` begins a text, `sep` ends it."""

    pad: int
    cls: int
    sep: int
    mask: int
    vocabulary: int

    @classmethod
    def of(cls, tokenizer: Any) -> Specials:
        t = tokenizer
        return cls(t.pad_token_id, t.cls_token_id, t.sep_token_id, t.mask_token_id, len(t))


@dataclass(frozen=True)
class Prepared:
    """What is ready before the first step: kind and sentences of each text, and the training, which returns its log."""

    texts: list[tuple[str, Any]]
    tokenizer: PreTrainedTokenizerBase
    model: PreTrainedModel
    training: Callable[[], dict[str, Any]]


def before_training(module: Any, folder: Path, seed: int) -> Any:
    """The network of a directory that a module pretrained, as it was before its first step, with weights of another seed."""
    import torch
    from transformers import AutoTokenizer

    recipe = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))["recipe"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1000 + seed)
        return module.new_model(module.Recipe(**recipe), Specials.of(AutoTokenizer.from_pretrained(folder)))


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


def pretrain(recipe: Any, out: Path, prepare: Callable[[Any], Prepared]) -> None:
    """Prepares, trains, and writes a transformers directory with `pretraining.json`: the recipe, what the text was, what was measured.

    The result depends only on the recipe, the library versions and the type of machine. Weights are stored in half precision, to be
    loaded (and fine-tuned) in float32.
    """
    import torch

    torch.set_num_threads(recipe.threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(recipe.seed)
    began = time.perf_counter()
    prepared = prepare(recipe)
    texts, tokenizer, model = prepared.texts, prepared.tokenizer, prepared.model
    seconds = round(time.perf_counter() - began, 1)
    print(f"{len(texts)} texts, {len(tokenizer)} pieces, {model.num_parameters()} parameters", file=sys.stderr)
    measured = prepared.training()
    model.half().save_pretrained(out)
    path = out / "config.json"
    config = json.loads(path.read_text())
    config["dtype"] = "float32"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tokenizer.save_pretrained(out)
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
            **{name: version(name) for name in ("torch", "transformers", "tokenizers")},
        },
        "prepare_seconds": seconds,
        **measured,
    }
    (out / "pretraining.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def command(about: str | None, recipe: Callable[..., Any], prepare: Callable[[Any], Prepared], *numbers: str) -> None:
    """A script's command line.

    Args:
        recipe: the class; options that are not given have its defaults.
        numbers: its whole-number fields that are options.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--out", type=Path, required=True, help="folder for the model")
    defaults = recipe()
    for name in numbers:
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    parser.add_argument("--precision", choices=("bf16", "no"), default=defaults.precision)
    options = vars(parser.parse_args())
    pretrain(recipe(**options), options.pop("out"), prepare)
