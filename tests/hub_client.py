"""The real huggingface_hub client of this process, pointed at a loopback hub and a cache of the test.

The library reads its environment once, at import; this sets the resulting constants.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 60
"""Seconds for an answer of the loopback hub, a thread of this process, on a busy machine."""


@contextmanager
def looking_at(endpoint: str, cache: Path, monkeypatch: pytest.MonkeyPatch, *, offline: bool = False) -> Iterator[None]:
    """Within the block the client asks `endpoint`; no token, no proxy, and no memory of what another hub said."""
    from huggingface_hub import close_session, constants

    from isoviz import hub

    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    with monkeypatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", endpoint)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "HF_HUB_CACHE", str(cache))
        patch.setattr(constants, "HF_HUB_OFFLINE", offline)
        patch.setattr(constants, "HF_TOKEN_PATH", str(cache / "no-token"))
        patch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", PATIENCE)
        patch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", PATIENCE)
        patch.setattr(hub, "_PATIENCE", float(PATIENCE))
        _patch_datasets(patch, endpoint, cache, offline)
        patch.setenv("HF_ENDPOINT", endpoint)  # for processes that are started from here
        patch.setenv("HF_HUB_CACHE", str(cache))
        patch.setenv("HF_DATASETS_CACHE", str(cache / "datasets"))
        patch.setenv("HF_HUB_OFFLINE", "1" if offline else "0")
        patch.setenv("HF_HUB_ETAG_TIMEOUT", str(PATIENCE))
        patch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", str(PATIENCE))
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.delenv("HF_TOKEN", raising=False)
        hub.forget_answers()
        close_session()  # made before, it knows other proxies, and keeps connections to a hub that is gone
        yield
    hub.forget_answers()
    close_session()


def _patch_datasets(patch: pytest.MonkeyPatch, endpoint: str, cache: Path, offline: bool) -> None:
    """The data sets' library keeps its own copies; it is left alone where no one loaded it."""
    if "datasets" not in sys.modules:
        return
    import datasets

    patch.setattr(datasets.config, "HF_ENDPOINT", endpoint)
    patch.setattr(datasets.config, "HF_HUB_OFFLINE", offline)
    patch.setattr(datasets.config, "HF_DATASETS_CACHE", cache / "datasets")
    patch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", cache / "datasets" / "downloads")
