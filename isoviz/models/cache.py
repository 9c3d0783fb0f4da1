"""Models that lie in this machine's hub cache. No torch, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from isoviz import hub
from isoviz.models import folders

MAIN: Final = "main"


def models() -> list[str]:
    """Names of the cached models that can be used, last used first: hub ids, with `@revision` where the main branch points elsewhere."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir(hub.cache_folder())
    except CacheNotFound:
        return []
    used: dict[str, float] = {}
    for repository in cache.repos:
        if repository.repo_type != "model":
            continue
        for revision in repository.revisions:
            weights = folders.has_weights(
                {file.file_name for file in revision.files}
            )  # else looked up, but never downloaded
            if weights and folders.problem(revision.snapshot_path) is None:
                named = next((ref for ref in sorted(revision.refs) if ref != MAIN), revision.commit_hash)
                name = repository.repo_id if MAIN in revision.refs else f"{repository.repo_id}@{named}"
                used[name] = repository.last_accessed
    return sorted(used, key=lambda name: (-used[name], name))


def find(name: str, revision: str | None) -> Path | None:
    """The folder of a model in the cache, complete or not; None if nothing of it is there."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(name, "config.json", cache_dir=hub.cache_folder(), revision=revision)
    return Path(path).parent if isinstance(path, str) else None
