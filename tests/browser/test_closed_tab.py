"""A tab that is closed while the server reads a large file for it: no one waits any more, so the reading ends."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import psutil
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Server
from tests.fuzzing.files import bomb
from tests.runs.observing import gone, until

_LOOK_SECONDS, _BUSY_SECONDS = 2.0, 0.4
"""A reader that uses this much processor time between two checks is working, even on a busy machine."""
_ENDED_SECONDS = 8.0
"""The file takes longer than that by far; the server looks twenty times a second."""


def readers(server: Server) -> dict[int, float]:
    """The server's reading processes, and the processor seconds that they have taken."""
    pids = {}
    for child in psutil.Process(server.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # it ended while we looked
            if "isoviz.jobs.worker" in " ".join(child.cmdline()):
                pids[child.pid] = sum(child.cpu_times()[:2])
    return pids


def at_work(server: Server) -> list[int]:
    """Reader processes that are using the processor."""
    before = readers(server)
    time.sleep(_LOOK_SECONDS)
    return [pid for pid, seconds in readers(server).items() if seconds - before.get(pid, seconds) > _BUSY_SECONDS]


def test_reading_ends_with_the_tab(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    file = bomb(tmp_path / "train.parquet", 3_000_000, 20)
    address = {
        "train_tasks": "Own data",
        "train_data.own": str(file),
        "train_own.text": "text",
        "train_own.label": "label",
    }
    page = open_tab(f"{server.url}/train?{urlencode(address)}")
    expect(page.get_by_role("combobox", name="Label column", exact=True)).to_be_visible()  # after the preview
    busy: list[int] = []
    until(lambda: busy.extend(at_work(server)) or busy)
    page.close()
    assert until(lambda: all(map(gone, busy))) < _ENDED_SECONDS
    assert not at_work(server), "nobody reads it in its place"
