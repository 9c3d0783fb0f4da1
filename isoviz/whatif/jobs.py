"""Encodings and layers on their way: one process per key, whoever asks. Its files are those of a view's job, and so is its care."""

from __future__ import annotations

from isoviz.exploring import jobs as views
from isoviz.exploring.jobs import State
from isoviz.whatif.request import Request, root

__all__ = ["State", "look", "start", "stop"]


def look(key: str) -> State:
    """How the job of this key stands: `none`, `running`, `done`, `failed` or `lost`."""
    return views.look(key, at=root())


def stop(key: str) -> None:
    """End the job of this key with everything it started, and forget it; nothing if there is none."""
    views.stop(key, at=root())


def start(request: Request) -> State:
    """Start the job unless it runs or is done; a failed or lost one is started anew."""
    return views.begin("isoviz.whatif.worker", request.key, request.as_json(), at=root())
