"""Small sentence-transformers models that the tests make: a transformer of random weights and the modules after it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TEXTS = [f"w{i} w{i + 3} " + "w7 w9 w11 " * (i % 4) + f"w{2 * i}" for i in range(1, 15)]


def make(
    folder: Path,
    transformer: Path,
    *,
    pooling: str | tuple[str, ...] = "mean",
    dense: int | None = None,
    layer_norm: bool = False,
    normalize: bool = False,
    prompts: Mapping[str, str] | None = None,
    default_prompt: str | None = None,
    include_prompt: bool = True,
    truncate: int | None = None,
    left: bool = False,
) -> Path:
    """A folder as the library saves it; `left`: it pads on the left; `dense`: the width of a Dense layer with tanh."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    torch.manual_seed(4)
    first = modules.Transformer(str(transformer), processor_kwargs={"padding_side": "left" if left else "right"})
    pooled = modules.Pooling(first.get_embedding_dimension(), pooling, include_prompt=include_prompt)
    width = pooled.get_embedding_dimension()
    parts = [first, pooled]
    if dense is not None:
        parts.append(modules.Dense(width, dense))
        width = dense
    if layer_norm:
        norm = modules.LayerNorm(width)
        torch.nn.init.normal_(norm.norm.weight, mean=1.0)
        parts.append(norm)
    if normalize:
        parts.append(modules.Normalize())
    model = SentenceTransformer(
        modules=parts,
        prompts=dict(prompts) if prompts else None,
        default_prompt_name=default_prompt,
        truncate_dim=truncate,
        device="cpu",
    )
    model.save(str(folder), create_model_card=False)
    return folder
