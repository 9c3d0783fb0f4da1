"""Requirements on a model's folder, here or on the hub: judged by the names of its files and its `config.json`. No torch."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from isoviz import input_validation
from isoviz.errors import listed
from isoviz.models import families
from isoviz.tasks.protocol import HeadKind

MODULES: Final = "modules.json"
"""Lists what a sentence-transformers model does to a text, one after another."""
_WEIGHTS: Final = re.compile(r"model(?:-\d{5}-of-(\d{5}))?\.safetensors")
_PICKLED: Final = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")
_TOKENIZERS: Final = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model", "tokenizer.model",
    "sentencepiece.bpe.model", "source.spm",
)  # fmt: skip
_WANTED: Final = (
    "config.json", "generation_config.json", "model.safetensors.index.json", "tokenizer*.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.*", "merges.txt", "*.model", "*.spm", "chat_template.jinja", "modules.json",
    "config_sentence_transformers.json", "sentence_*_config.json",
)  # fmt: skip
_MODULE_FILE: Final = re.compile(r"\d+_\w+/(?:config\.json|model\.safetensors)", re.ASCII)
"""Of a module that follows the transformer of a sentence-transformers model: `2_Dense/config.json`."""


def config_of(folder: Path) -> dict[str, Any] | None:
    """The content of `config.json`; None where that is no JSON object (or is not there)."""
    return input_validation.json_object(folder / "config.json")


def weights(folder: Path) -> list[Path]:
    """The files that hold a model's weights, in one part or several."""
    return sorted(path for path in folder.glob("model*.safetensors") if _WEIGHTS.fullmatch(path.name))


def is_wanted(name: str) -> bool:
    """Whether a file of a repository is needed to load its model: configuration, tokenizer, safetensors; nothing else is fetched."""
    if "/" in name:
        return bool(_MODULE_FILE.fullmatch(name))
    return bool(_WEIGHTS.fullmatch(name)) or any(fnmatchcase(name, pattern) for pattern in _WANTED)


def module_files(folder: Path) -> list[Path]:
    """The files that say how a sentence-transformers model turns tokens into one vector; none for a bare transformer."""
    if not (folder / MODULES).is_file():
        return []
    names = (
        "modules.json",
        "config_sentence_transformers.json",
        *(path.name for path in folder.glob("sentence_*_config.json")),
    )
    inner = (path for path in folder.glob("*_*/*") if _MODULE_FILE.fullmatch(path.relative_to(folder).as_posix()))
    return sorted(path for path in (*(folder / name for name in names), *inner) if path.is_file())


def missing_module_files(folder: Path) -> list[str]:
    """The files without which the modules that a folder lists cannot be read."""
    try:
        listing = json.loads((folder / MODULES).read_text(encoding="utf-8"))
        paths = [str(entry["path"]) for entry in listing]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # reading the modules says what is wrong
        return []
    configured = [f"{path}/config.json" for path in paths if path and not path.endswith("_Normalize")]
    return [name for name in configured if not (folder / name).is_file()]


def has_weights(names: Collection[str]) -> bool:
    """Whether there are weights at all, readable or not."""
    return any(_WEIGHTS.fullmatch(name) or name.endswith(_PICKLED) for name in names)


def problem(folder: Path) -> str | None:
    """Why a directory is no model that can be loaded, as the end of a sentence that begins with its name; else None."""
    try:
        if not (folder / "config.json").is_file():
            return "holds no model (no config.json)"
        names = {path.name: path.is_file() for path in folder.iterdir()}
        stored = sum(path.stat().st_size for path in weights(folder) if path.is_file())
    except OSError as error:
        return f"cannot be read: {input_validation.reason(error)}"
    if "adapter_config.json" in names:  # transformers would load what it names, pickles included
        return "is an adapter of another model; merge the two and save the result"
    config = config_of(folder)
    if config is None:
        return "has a config.json that is not valid JSON"
    if broken := [name for name, is_file in names.items() if is_wanted(name) and not is_file]:
        return f"has a '{broken[0]}' that is not a file"
    return problem_in(names, config, stored)


def problem_in(names: Collection[str], config: Mapping[str, Any], stored: int | None = None) -> str | None:
    """The same for a repository, by the names of its files and its configuration; `stored` bytes of weights, if that is known."""
    if not isinstance(config.get("model_type"), str):
        return "has no model_type in its config.json, so transformers cannot load it"
    if families.needs_own_code(config):
        return (
            f"needs its own code (family '{config['model_type']}'), which is never run "
            "(trust_remote_code stays off); use a model of a family that transformers itself has"
        )
    parts = [match for match in map(_WEIGHTS.fullmatch, names) if match]
    if not parts:
        pickled = any(name.endswith(_PICKLED) for name in names)
        return "has no model.safetensors" + (
            " (pickled weights are not read, because reading them runs code; save it once as safetensors, "
            "or name a revision that has them, as in model@refs/pr/1)"
            if pickled
            else " (its weights are missing)"
        )
    if "model.safetensors" not in names:
        count = int(parts[0][1])
        missing = [name for part in range(1, count + 1) if (name := _part(part, count)) not in names]
        if missing:
            return f"lacks some of its weights (no {missing[0]})"
    if not any(name in names for name in _TOKENIZERS):
        return "has no tokenizer (no tokenizer.json or vocabulary)"
    return families.impossible_size(config, stored)


def head_problem(config: Mapping[str, Any], head: HeadKind) -> str | None:
    """Why a model cannot be fine-tuned with that kind of head, as the end of a sentence that begins with its name; else None."""
    family = str(config.get("model_type"))
    can = families.heads(config)
    if head in can:
        width = config.get("hidden_size")
        narrowed = family == "opt" and config.get("word_embed_proj_dim", width) != width  # OPT-350m alone
        return "narrows its last layer, so it cannot be fine-tuned here" if narrowed else None
    of = f"is of the family '{family}'"
    if families.is_composite(config):
        return f"{of}, which joins several networks: it cannot be fine-tuned here; use its text model alone"
    if (kind := families.architecture(config)) != "encoder":
        of += f", {'a' if kind == 'decoder' else 'an'} {kind}"
    allowed = f"families that can: {listed(sorted(families.families_of(head)))}"
    if not can:
        return f"{of}: it can be measured and explored, not fine-tuned for {head} ({allowed})"
    return f"{of}: it can be fine-tuned for {', '.join(can)}, not for {head} ({allowed})"


def _part(number: int, count: int) -> str:
    return f"model-{number:05d}-of-{count:05d}.safetensors"
