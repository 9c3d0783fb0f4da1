"""What the pretraining of both bundled models has in common: optimiser, precision, folder, record, command line."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class Recipe(Protocol):
    """What both recipes, which are dataclasses, have."""

    @property
    def learning_rate(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def threads(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def precision(self) -> str: ...


def begin(recipe: Recipe) -> None:
    """Threads and seed; from here on the result depends on the recipe, the versions and the kind of machine alone."""
    import torch

    torch.set_num_threads(recipe.threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(recipe.seed)


def optimizer_of(model: PreTrainedModel, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW; vectors (biases, layer norms) do not decay."""
    import torch

    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=recipe.learning_rate,
        betas=(0.9, 0.98),
        fused=True,
    )


def autocast(precision: str) -> Any:
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16")


def step_with(
    loss: torch.Tensor,
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LambdaLR,
) -> None:
    """One step of optimiser and schedule, the gradient's norm cut at 1."""
    import torch

    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()


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
    """The command line of a script.

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
