"""Commands that are ended from outside, each a real process: what the store says then, and what the next command can do."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from isoviz.__main__ import main
from isoviz.events import Checkpointed, Event
from isoviz.runs.store import RunRow, Store
from tests.forked import Command, Program
from tests.runs.observing import posix, until

pytestmark = [posix, pytest.mark.slow]
Start = Callable[..., Command]


@pytest.fixture
def start(tiny_models: Any, cola: Path, store: Store, tmp_path: Path) -> Iterator[Start]:
    """Starts `isoviz train` with a run of many short epochs for each seed."""
    started: list[Command] = []

    def begin(*options: str, epochs: int = 40, program: Program = main) -> Command:
        words = ["train", "--model", str(tiny_models("bert")), "--task", "glue/cola", "--data", str(cola)]
        words += ["--epochs", str(epochs), "--lr", "5e-3", "--batch-size", "8", "--threads", "1", "--method", "istar"]
        words += ["--store", store.url, *options]
        started.append(Command(words, tmp_path, {**os.environ, "OMP_NUM_THREADS": "1"}, program))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


def first(store: Store) -> RunRow:
    return store.list(order="oldest")[0]


def under_way(store: Store, process: Command) -> RunRow:
    """The first run, when it has left its first checkpoint."""

    def checkpointed() -> bool:
        assert process.returncode is None, process.stderr
        rows = store.list(order="oldest")
        return bool(rows) and rows[0].progress is not None and rows[0].progress.checkpoint_step > 0

    until(checkpointed, seconds=600)
    return first(store)


def command(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The document of a command that is carried out in this process."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.nightly
def test_after_a_kill_every_command_works_at_once(
    start: Start, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    process = start("--seeds", "0", "1", "2", epochs=6)
    killed = under_way(store, process).id
    process.kill()
    listed = command("runs", "list", "--store", store.url, capsys=capsys)["runs"]
    assert [run["status"] for run in listed] == ["lost"] * 3
    assert {run["error"]["message"] for run in listed[:2]} == {"the command that was running it has ended"}
    assert listed[2]["id"] == killed and listed[2]["error"]["message"] == "the worker vanished"
    assert "Resume" in listed[2]["error"]["advice"]
    stopped = command("runs", "stop", killed, "--store", store.url, capsys=capsys)["runs"][0]
    assert stopped["status"] == "lost"
    resumed = command("runs", "resume", killed, "--store", store.url, capsys=capsys)["runs"][0]
    never_begun = command("runs", "resume", listed[1]["id"], "--store", store.url, capsys=capsys)["runs"][0]
    assert [resumed["status"], never_begun["status"]] == ["finished", "finished"]
    assert command("runs", "delete", listed[0]["id"], "--store", store.url, capsys=capsys)["deleted"]


def test_first_signal_leaves_a_checkpoint_and_ends_the_command(start: Start, store: Store) -> None:
    process = start("--seeds", "0", "1", "--json", epochs=400)
    under_way(store, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 1
    assert "Traceback" not in process.stderr and "stopping after this step" in process.stderr
    assert [run["status"] for run in json.loads(process.stdout)["runs"]] == ["stopped"]
    assert [row.status for row in store.list()] == ["stopped", "stopped"]
    ending = store.events(first(store).id)[-1][1]
    assert ending["forced"] is False and ending["step"] == first(store).progress.step  # type: ignore[union-attr]


def deaf(words: Sequence[str]) -> int:
    """`isoviz` with a training whose first optimiser step takes ten minutes."""
    import isoviz.training.loop

    def train(config: Any, emit: Callable[[Event], None], *_: object) -> None:
        emit(Checkpointed(step=7, epoch=1, path="c"))
        while True:
            time.sleep(0.01)

    isoviz.training.loop.train = train  # type: ignore[assignment]
    return main(words)


def test_second_signal_ends_at_once_without_a_traceback(start: Start, store: Store) -> None:
    process = start("--seeds", "0", "1", program=deaf)
    under_way(store, process)
    process.send_signal(signal.SIGINT)
    until(lambda: "stopping after this step" in process.stderr)
    time.sleep(1.0)  # two signals at once count as one request
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130 and process.stderr.splitlines()[-1] == "isoviz: interrupted"
    assert "Traceback" not in process.stderr
    assert [row.status for row in store.list()] == ["stopped", "stopped"]
    ending = store.events(first(store).id)[-1][1]
    assert (ending["forced"], ending["step"]) == (True, 7)
