"""Where a model comes from: bundled, a local directory, this machine's hub cache, or the hub. No torch here."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from isoviz import demo
from isoviz.errors import ModelError
from isoviz.models.families import FAMILIES, RESERVED_POSITIONS


@dataclass(frozen=True)
class ModelSource:
    """A model that can be loaded.

    Attributes:
        name: as the user wrote it.
        kind: where it lies.
        location: a directory, or the hub id for `kind="hub"`.
        fingerprint: of its configuration and weights ("unfetched" before a hub model's download).
    """

    name: str
    kind: Literal["bundled", "local", "cached", "hub"]
    location: str
    fingerprint: str


def bundled() -> tuple[str, ...]:
    """Names of the models that come with the package."""
    return demo.bundled_models()


def resolve(model: str) -> ModelSource:
    """Find a model by name, directory or hub id.

    Raises:
        ModelError: it is not there, is no model of a supported family, or the hub cannot be asked.
    """
    if model in bundled():
        folder = demo.bundled_model_dir(model)
        return ModelSource(model, "bundled", str(folder), fingerprint(folder))
    folder = Path(model).expanduser()
    if folder.is_dir():
        check_directory(folder)
        return ModelSource(model, "local", str(folder), fingerprint(folder))
    if model.startswith(("/", ".", "~", "demo/")) or model.count("/") > 1 or not model.strip():
        raise ModelError(
            f"model: no such model or directory '{model}' (bundled: {', '.join(bundled())}; or a local directory, or a hub id)",
            field="model",
        )
    return _from_hub(model)


def longest_input(source: ModelSource) -> int | None:
    """Tokens that a model can read at most; None where its configuration is not on this machine or does not say."""
    config_file = Path(source.location) / "config.json"
    if source.kind == "hub" or not config_file.is_file():
        return None
    config = json.loads(config_file.read_text(encoding="utf-8"))
    positions = config.get("max_position_embeddings")
    return None if positions is None else int(positions) - RESERVED_POSITIONS.get(config["model_type"], 0)


def check_directory(folder: Path) -> None:
    """Raise `ModelError` unless the directory holds a safetensors encoder of a supported family with its tokenizer."""
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise ModelError(f"model: '{folder}' holds no model (no config.json)", field="model")
    try:
        family = json.loads(config_file.read_text(encoding="utf-8")).get("model_type")
    except (ValueError, AttributeError):
        raise ModelError(f"model: {config_file} is not valid JSON", field="model") from None
    if family not in FAMILIES:
        raise ModelError(
            f"model: '{folder}' is of the family '{family}' (supported: {', '.join(sorted(FAMILIES))})",
            field="model",
        )
    if not any(folder.glob("model*.safetensors")):
        raise ModelError(
            f"model: '{folder}' has no model.safetensors (pickled weights are not read; save it as safetensors)",
            field="model",
        )
    if not any(
        (folder / name).is_file() for name in ("tokenizer.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")
    ):
        raise ModelError(f"model: '{folder}' has no tokenizer (no tokenizer.json or vocabulary)", field="model")


def fingerprint(folder: Path) -> str:
    """Sixteen hex digits of the configuration's and weights' content."""
    files = sorted([folder / "config.json", *folder.glob("model*.safetensors")])
    return _digest(tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files))


@functools.lru_cache(maxsize=64)
def _digest(files: tuple[tuple[str, int, int], ...]) -> str:
    total = hashlib.sha256()
    for path, _, _ in files:
        with open(path, "rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def hub_reachable() -> bool:
    """Whether the hub answers at all; asked once per process, two seconds at most."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return False
    address = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        with socket.create_connection(
            (address.hostname or "", address.port or (443 if address.scheme == "https" else 80)), 2
        ):
            return True
    except OSError:
        return False


def _from_hub(model: str) -> ModelSource:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
    )

    try:
        cached = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        raise ModelError(f"model: '{model}' is neither a directory nor a hub id", field="model") from None
    if isinstance(cached, str):
        folder = Path(cached).parent
        check_directory(folder)
        return ModelSource(model, "cached", str(folder), fingerprint(folder))
    if not hub_reachable():
        raise ModelError(
            f"model: '{model}' is not on this machine and the Hugging Face hub cannot be reached; "
            f"use a bundled model ({', '.join(bundled())}) or a local directory",
            field="model",
        )
    try:
        config_file = hf_hub_download(model, "config.json", etag_timeout=10)
    except GatedRepoError:
        raise ModelError(
            f"model: '{model}' is gated; accept its terms on the hub and log in with `hf auth login`", field="model"
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(f"model: the hub has no model '{model}' (or it is private)", field="model") from None
    except EntryNotFoundError:
        raise ModelError(f"model: '{model}' on the hub has no config.json", field="model") from None
    except (HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"model: the hub did not give '{model}': {str(error).splitlines()[0]}", field="model"
        ) from None
    family = json.loads(Path(config_file).read_text(encoding="utf-8")).get("model_type")
    if family not in FAMILIES:
        raise ModelError(
            f"model: '{model}' is of the family '{family}' (supported: {', '.join(sorted(FAMILIES))})", field="model"
        )
    return ModelSource(model, "hub", model, "unfetched")
