"""Sentence-transformers models as their authors meant them: transformer, pooling, and every module after it, through that library.

Reading such a folder as a bare transformer would skip its Dense layers without a word. What the library would do beyond reading data
(code of the repository, pickled weights, files elsewhere) is refused before it is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation
from isoviz.errors import InputError, ModelError, listed, unknown_name
from isoviz.models import families, folders
from isoviz.models.sources import ModelSource, configuration

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

MODULES: Final = ("Transformer", "Pooling", "Dense", "LayerNorm", "Normalize")
"""Classes of sentence-transformers that are read."""
_WITH_WEIGHTS: Final = ("Dense", "LayerNorm")
_PATH: Final = re.compile(r"\d+_\w+", re.ASCII)
_ACTIVATION: Final = re.compile(r"torch\.nn\.(?:modules\.(?:activation|linear)\.)?[A-Z]\w*", re.ASCII)
_BARE: Final = "Choose another pooling to read the transformer without its modules."


@dataclass(frozen=True)
class SentenceModules:
    """What a sentence-transformers folder says about itself.

    Attributes:
        names: classes of its modules in order, such as `("Transformer", "Pooling", "Dense", "Normalize")`.
        pooling: modes of the Pooling module: `mean`, `lasttoken`, ...
        prompts: name → text that goes before a text.
        default_prompt: the name of the prompt that is used unless another is chosen; None for none.
        truncate: dimensions that are kept of each vector by default; None for all.
    """

    names: tuple[str, ...]
    pooling: tuple[str, ...]
    prompts: Mapping[str, str]
    default_prompt: str | None
    truncate: int | None

    @property
    def words(self) -> str:
        """`Transformer → Pooling (mean) → Normalize`."""
        modes = {"Pooling": f"Pooling ({' + '.join(self.pooling)})"}
        return " → ".join(modes.get(name, name) for name in self.names)


def describe(folder: Path) -> SentenceModules | None:
    """The modules of a folder; None for a bare transformer. No torch.

    Raises:
        ModelError: it has modules, but they cannot be read here: an unknown class, pickled weights, code, or broken files.
    """
    if not folders.module_files(folder):
        return None
    with input_validation.parsing(f"the modules of '{folder}' cannot be read", "model", ModelError):
        listing = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        modules = [(str(entry["type"]), str(entry["path"])) for entry in listing]
        settings = input_validation.json_object(folder / "config_sentence_transformers.json") or {}
        if problem := _problem(folder, modules, settings):
            raise ModelError.at("model", f"'{folder}' {problem}", _BARE)
        prompts = (settings.get("prompts") or {}).items()
        pooled = next(path for name, path in modules if name.endswith(".Pooling"))
        truncate = settings.get("truncate_dim")
        return SentenceModules(
            names=tuple(name.rpartition(".")[2] for name, _ in modules),
            pooling=_modes(input_validation.json_object(folder / pooled / "config.json") or {}),
            prompts={"query": "", "document": "", **{str(name): str(text or "") for name, text in prompts}},
            default_prompt=settings.get("default_prompt_name"),
            truncate=None if truncate is None else int(truncate),
        )


def load(source: ModelSource, dtype: torch.dtype | None = None) -> SentenceTransformer:
    """The model as the library loads it, in float32 unless `dtype` is given, and evaluation mode, on the CPU.

    Whether the transformer's weights fit its configuration is not looked at here; `isoviz.models.encoder.load` does that.

    Args:
        source: on this machine (see `sources.fetch`).

    Raises:
        ModelError: it has no modules, or they cannot be read.
    """
    import torch

    from isoviz.models.loading import reading

    if describe(Path(source.location)) is None:
        raise ModelError.at("model", f"'{source.name}' has no modules.json, so its authors define no sentence vectors")
    with reading(source, "the modules of "), torch.random.fork_rng(devices=[]):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(
            source.location,
            device="cpu",
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True, "dtype": dtype or torch.float32},
        )
        return model.eval()


def modules_of(source: ModelSource, width: int, pooling: str) -> torch.nn.Sequential:
    """What makes sentence vectors of token vectors: the source's own modules without Normalize, else a pooling.

    Args:
        width: of the token vectors.
        pooling: `auto` is the authors', else `last` of a decoder and `mean` of others; `cls`, `mean` and `last` replace the
            authors', and what follows it is left out.

    Raises:
        ModelError: the modules cannot be read, or leave a prompt's tokens out.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling

    if pooling != "auto" or describe(Path(source.location)) is None:
        if pooling == "auto":
            pooling = "last" if families.architecture(configuration(source)) == "decoder" else "mean"
        mode: Any = "lasttoken" if pooling == "last" else pooling
        return torch.nn.Sequential(Pooling(width, mode))
    modules = [module for module in list(load(source))[1:] if type(module).__name__ != "Normalize"]
    if not all(getattr(module, "include_prompt", True) for module in modules):
        raise ModelError.at("model", f"'{source.name}' leaves the tokens of a prompt out, which cannot be trained here")
    return torch.nn.Sequential(*modules)


def vectors(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    prompt: str | None = None,
    truncate: int | None = None,
    max_length: int | None = None,
    batch_size: int = 64,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """(n, d): what the library's own `encode` gives.

    Args:
        prompt: name of one of its prompts; None for its default, if it has one.
        truncate: keep the first so many dimensions (Matryoshka); None for the model's own default.
        max_length: tokens read of a text at most, if that is fewer than the model reads itself.
        progress: called with the texts done.

    Raises:
        InputError: no such prompt, or more dimensions than there are.
        ModelError: a vector that is not finite.
    """
    if prompt is not None and prompt not in model.prompts:
        raise unknown_name("prompt", prompt, model.prompts, field="prompt")
    with model.truncate_embeddings(None):
        width = model.get_embedding_dimension()
    if truncate is not None and not 1 <= truncate <= (width or truncate):
        raise InputError.at("truncate-dim", f"must be at least 1, at most {width} (got {truncate})")
    model_length, done = model.max_seq_length, 0

    def count(module: Any, inputs: Any, output: Mapping[str, Any]) -> None:
        nonlocal done
        done += len(output["sentence_embedding"])
        if progress:
            progress(min(done, len(texts)))

    handle = model.register_forward_hook(count)
    try:
        if max_length is not None:
            model.max_seq_length = min(max_length, model_length or max_length)
        with input_validation.parsing("the texts cannot be embedded", "model", ModelError):
            points: NDArray[np.float32] = model.encode(
                list(texts), prompt_name=prompt, truncate_dim=truncate, batch_size=batch_size, show_progress_bar=False
            ).astype(np.float32, copy=False)
    finally:
        handle.remove()
        model.max_seq_length = model_length
    if not np.isfinite(points).all():
        raise ModelError.at(
            "model", "its sentence vectors have numbers that are NaN or infinite; its weights are damaged"
        )
    return points


def _problem(folder: Path, modules: Sequence[tuple[str, str]], settings: Mapping[str, Any]) -> str | None:
    """Why the modules of a folder are not read, as the end of a sentence that begins with its name; else None."""
    kind = settings.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        return f"is a {kind}, which gives no sentence vectors"
    names = [name.rpartition(".")[2] for name, _ in modules]
    for (written, path), name in zip(modules, names, strict=True):
        if not written.startswith("sentence_transformers."):
            return f"has a module '{written}', which needs its own code, which is never run"
        if name not in MODULES:
            return f"has a module of class '{name}', which is not read here (allowed: {listed(MODULES)})"
        if name != "Transformer" and not _PATH.fullmatch(path):
            return f"keeps a module in '{path}', which is no folder such as '1_Pooling'"
    if names[:1] != ["Transformer"] or names.count("Transformer") > 1 or "Pooling" not in names:
        return f"has the modules {listed(names) or 'none'}; expected one Transformer, then a Pooling"
    if modules[0][1]:
        return f"keeps its transformer in '{modules[0][1]}', an old layout; save it again with sentence-transformers 3 or later"
    for settings_file in folder.glob("sentence_*_config.json"):
        if "tokenizer_name_or_path" in (input_validation.json_object(settings_file) or {}):
            return f"names a tokenizer elsewhere in {settings_file.name}; save the model again with its own tokenizer"
    for (_, path), name in zip(modules, names, strict=True):
        if name in _WITH_WEIGHTS and not (folder / path / "model.safetensors").is_file():
            pickled = (folder / path / "pytorch_model.bin").exists()
            remark = " (pickled weights are not read, because reading them runs code)" if pickled else ""
            return f"has no {path}/model.safetensors{remark}; save it again with sentence-transformers 3 or later"
        activation = (input_validation.json_object(folder / path / "config.json") or {}).get("activation_function")
        if name == "Dense" and activation is not None and not _ACTIVATION.fullmatch(str(activation)):
            # the library would put tanh in its place, with a line in the log
            return f"has a Dense module with the activation '{activation}', which is none of torch's"
    return None


def _modes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The pooling modes of a Pooling module's configuration, of any version."""
    mode = config.get("pooling_mode")
    if mode is not None:
        return (mode,) if isinstance(mode, str) else tuple(map(str, mode))
    old = (
        name.removeprefix("pooling_mode_")
        for name, on in config.items()
        if name.startswith("pooling_mode_") and on is True
    )
    return tuple(name.removesuffix("_token").removesuffix("_tokens") for name in old) or ("mean",)
