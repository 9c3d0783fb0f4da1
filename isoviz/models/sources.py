"""Where a model comes from: bundled, a local directory, this machine's hub cache, or the hub. No torch here."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from isoviz import allowed_paths, demo, input_validation
from isoviz.errors import ModelError
from isoviz.hub import offline
from isoviz.models import families, folders, hub
from isoviz.tasks.protocol import HeadKind


@dataclass(frozen=True)
class ModelSource:
    """A model that can be loaded.

    Attributes:
        name: as the user wrote it.
        kind: where it lies.
        location: a directory, or the hub id for `kind="hub"`, which `fetch` turns into a directory.
        fingerprint: of its configuration and weights ("unfetched" before a hub model's download).
        revision: the commit, for a model of the hub or its cache.
        size: bytes of its files.
    """

    name: str
    kind: Literal["bundled", "local", "cached", "hub"]
    location: str
    fingerprint: str
    revision: str | None = None
    size: int = 0


def bundled() -> tuple[str, ...]:
    """Names of the models that come with the package."""
    return demo.bundled_models()


def resolve(model: str, head: HeadKind | None = None, commit: str | None = None) -> ModelSource:
    """Find a model by name, directory or hub id (`org/name`, or `org/name@revision` with a branch, a tag or a commit).

    What lies in the hub cache is taken from there without asking the hub, but for whether the model has modules that another library
    did not fetch. Nothing but a configuration is fetched.

    Args:
        head: what it shall be fine-tuned with; None if it is to be measured only, for which any family will do.
        commit: of a model of the hub, wherever its name points now.

    Raises:
        ModelError: it is not there, cannot be loaded or cannot have such a head, or the hub cannot be asked.
    """
    if model in bundled():
        return _in_folder(model, "bundled", demo.bundled_model_dir(model), head)
    folder = folder_of(model)
    if folder is not None:
        if (roots := allowed_paths.roots()) is not None:
            allowed_paths.check_contents(folder, roots, "model", ModelError)
        return _in_folder(model, "local", folder, head)
    if model.startswith(("/", ".", "~", "demo/")) or model.partition("@")[0].count("/") > 1 or not model.strip():
        raise ModelError.at(
            "model",
            f"no such model or directory '{model}' (bundled: {', '.join(bundled())}; or a local directory, or a hub id)",
        )
    return _from_hub(model, head, commit)


def folder_of(model: str) -> Path | None:
    """The directory that a name means; None for what can only be the name of a bundled model or a hub id.

    Raises:
        ModelError: a path that no disk can have, or that the browser may not read.
    """
    if allowed_paths.roots() is not None and allowed_paths.model_folder(model, None, ModelError) is None:
        return None
    return input_validation.folder(model, "model", ModelError)


def refuse_folder(model: str) -> None:
    """Raise `ModelError` for a visitor's hub id that is also a folder where this process works: `resolve` would read that."""
    if model not in bundled() and not Path(model).is_absolute() and Path(model).is_dir():
        raise ModelError.at("model", f"'{model}' is also a folder on this server; enter its full path")


def fetch(source: ModelSource, report: hub.Report | None = None) -> ModelSource:
    """The same model with all its files on this machine, so that `location` is a directory; at once unless it is on the hub.

    Args:
        report: called with bytes done, bytes in all, and what is being done.

    Raises:
        ModelError: the download broke off.
    """
    if source.kind != "hub":
        return source
    folder = hub.fetch(hub.look(source.location, source.revision), report or (lambda *_: None))
    return _in_folder(source.name, "cached", folder, None)


def configuration(source: ModelSource) -> dict[str, Any]:
    """The content of a model's `config.json`, which `resolve` has fetched; empty where that is not on this machine any more."""
    folder = hub.find(source.location, source.revision) if source.kind == "hub" else Path(source.location)
    return (folder and folders.config_of(folder)) or {}


def longest_input(source: ModelSource) -> int | None:
    """Tokens that a model can read at most; None where its configuration does not say."""
    return families.longest_input(configuration(source))


def fingerprint(folder: Path) -> str:
    """Sixteen hex digits of the configuration's and weights' content."""
    return digest([folder / "config.json", *folders.weights(folder)])


def digest(files: Sequence[Path], named: bool = False) -> str:
    """Sixteen hex digits of the content of files, and of their names if `named`."""
    return _digest(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files), named)


@functools.lru_cache(maxsize=128)
def _digest(files: tuple[tuple[Path, int, int], ...], named: bool) -> str:
    total = hashlib.sha256()
    for path, _, _ in files:
        total.update((path.name.encode() + b"\0" if named else b"") + _sha256(path))
    return total.hexdigest()[:16]


def _sha256(path: Path) -> bytes:
    """SHA-256 of a file's content, read from its name where the hub cache has it: that saves reading gigabytes."""
    resolved = path.resolve()
    if resolved.parent.name == "blobs" and re.fullmatch(r"[0-9a-f]{64}", resolved.name):
        return bytes.fromhex(resolved.name)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _in_folder(
    name: str, kind: Literal["bundled", "local", "cached"], folder: Path, head: HeadKind | None
) -> ModelSource:
    place = folder if kind == "local" else name
    if problem := folders.problem(folder):
        raise ModelError.at("model", f"'{place}' {problem}")
    config = folders.config_of(folder) or {}
    if head and (problem := folders.head_problem(config, head)):
        raise ModelError.at("model", f"'{place}' {problem}")
    with input_validation.parsing(f"'{place}' cannot be read", "model", ModelError):
        size = sum(path.stat().st_size for path in folder.iterdir() if folders.is_wanted(path.name))
        content = fingerprint(folder)
    return ModelSource(name, kind, str(folder), content, folder.name if kind == "cached" else None, size)


def _from_hub(model: str, head: HeadKind | None, commit: str | None = None) -> ModelSource:
    parsed = hub.parse(model)
    if parsed is None:
        raise ModelError.at("model", f"'{model}' is neither a directory nor a hub id")
    name, revision = parsed[0], commit or parsed[1]
    folder = hub.find(name, revision)
    problem = folders.problem(folder) if folder else None
    if folder and not problem and (offline() or not hub.lacks_modules(name, folder)):
        return _in_folder(model, "cached", folder, head)
    if reason := offline():
        local_state = f"is in this machine's hub cache, but {problem}," if problem else "is not on this machine"
        instead = f"use a bundled model ({', '.join(bundled())}), a local directory or a model of the hub cache"
        if commit:
            instead = f"a run continues with the commit it started from ({commit[:10]}): resume it when the hub can be reached"
        raise ModelError.at("model", f"'{model}' {local_state} and {reason}; {instead}")
    remote = hub.look(name, folder.name if folder else revision)
    if head and (problem := folders.head_problem(remote.config, head)):
        raise ModelError.at("model", f"'{model}' {problem}")
    return ModelSource(model, "hub", name, "unfetched", remote.revision, remote.size)
