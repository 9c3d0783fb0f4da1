"""Models that lie in this machine's hub cache: which, how large, and whether they can be used. No torch, no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isoviz import hub
from isoviz.models import folders

MAIN: Final = "main"


@dataclass(frozen=True)
class CachedModel:
    """One model at one commit.

    Attributes:
        name: what to write as MODEL: the hub id, with `@revision` where the main branch points elsewhere.
        revision: the commit.
        size: bytes on disk.
        last_used: seconds since the epoch, as the file system tells.
        family: from its configuration, if it says.
        problem: why it cannot be used, as the end of a sentence that begins with its name; None if it can.
    """

    name: str
    revision: str
    size: int
    last_used: float
    family: str | None
    problem: str | None


def models() -> list[CachedModel]:
    """All cached models with weights: usable ones first, then by last use."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir(hub.cache_folder())
    except CacheNotFound:
        return []
    entries = []
    for repository in cache.repos:
        if repository.repo_type != "model":
            continue
        for revision in repository.revisions:
            if not folders.has_weights({file.file_name for file in revision.files}):
                continue  # looked up, but never downloaded
            config = folders.config_of(revision.snapshot_path) or {}
            named = next((ref for ref in sorted(revision.refs) if ref != MAIN), revision.commit_hash)
            entries.append(
                CachedModel(
                    name=repository.repo_id if MAIN in revision.refs else f"{repository.repo_id}@{named}",
                    revision=revision.commit_hash,
                    size=revision.size_on_disk,
                    last_used=repository.last_accessed,
                    family=config.get("model_type"),
                    problem=folders.problem(revision.snapshot_path),
                )
            )
    return sorted(entries, key=lambda model: (model.problem is not None, -model.last_used, model.name))


def find(name: str, revision: str | None) -> Path | None:
    """The folder of a model in the cache, complete or not; None if nothing of it is there."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(name, "config.json", cache_dir=hub.cache_folder(), revision=revision)
    return Path(path).parent if isinstance(path, str) else None
