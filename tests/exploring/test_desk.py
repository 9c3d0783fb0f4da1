"""Questions to the process that stays: asked, answered, kept, forgotten; one that kills it is not asked again."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from isoviz.errors import InputError
from isoviz.exploring import desk, desk_worker, results
from isoviz.exploring.desk import Reply
from isoviz.exploring.desk_worker import Kept
from isoviz.exploring.progress import read_json, write_json
from isoviz.models import sources
from isoviz.runs.processes import is_alive
from tests.tiny import TinyModels, embed

PATIENCE = 240.0


@pytest.fixture(autouse=True)
def _nobody_stays() -> Iterator[None]:
    yield
    desk.close()


def settled(ask: Callable[[], Reply]) -> Reply:
    deadline = time.monotonic() + PATIENCE
    while (reply := ask()).kind in ("waiting", "running"):
        assert time.monotonic() < deadline, reply
        time.sleep(0.02)
    return reply


def question(name: str, *lines: str, **more: Any) -> dict[str, Any]:
    more.setdefault("fingerprint", name)
    asked = {"model": name, "layer": 2, "pooling": "mean", "max_length": 64}
    return {**asked, "texts": [list(lines)], **more}


def process() -> dict[str, Any]:
    found = read_json(results.root() / "desk" / "sentences" / desk.PROCESS)
    assert found is not None
    return found


def test_sentences_through_a_process_that_stays(tiny_models: TinyModels, tmp_path: Path) -> None:
    name = str(shutil.copytree(tiny_models("bert"), tmp_path / "model"))
    first = question(name, "w1 w2", "w3")
    assert desk.ask("sentences", first).kind == "waiting"
    reply = settled(lambda: desk.ask("sentences", first))
    assert reply.kind == "done", reply
    expected = embed(sources.resolve(name), first["texts"], pooling="mean", layer=2, max_length=64)
    np.testing.assert_allclose(reply.arrays["points"], expected, atol=1e-5)

    pid = process()["pid"]
    Path(name).rename(tmp_path / "away")
    again = settled(lambda: desk.ask("sentences", question(name, "w5 w6 w7")))
    assert again.kind == "done" and process()["pid"] == pid  # the same process, the model still there: not on the disk
    (tmp_path / "away").rename(name)

    wrong = settled(lambda: desk.ask("sentences", question("/no/such/model", "w1", fingerprint="none")))
    assert wrong.kind == "failed" and "no such model" in wrong.message and wrong.field == "model"

    # killed: what was answered stays, what is asked next starts another
    psutil.Process(pid).kill()
    assert desk.ask("sentences", first).kind == "done"
    desk.forget("sentences", again.id)
    assert settled(lambda: desk.ask("sentences", question(name, "w5 w6 w7"))).kind == "done"
    assert process()["pid"] != pid


def test_question_that_ended_the_process_is_told_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    spawned: list[str] = []
    monkeypatch.setattr(desk, "_spawn", lambda root, kind: spawned.append(kind))
    asked = {"view": "none"}
    reply = desk.ask("maps", asked)
    assert reply.kind == "waiting" and spawned == ["maps"]
    write_json(results.root() / "desk" / "maps" / reply.id / desk.BEGUN, {"at": 0})
    lost = desk.ask("maps", asked)
    assert lost.kind == "failed" and "is gone" in lost.message and spawned == ["maps"]
    desk.forget("maps", lost.id)
    assert desk.ask("maps", asked).kind == "waiting" and len(spawned) == 2


def test_arrays_belong_to_the_question() -> None:
    one, other = np.zeros((2, 3), dtype=np.float32), np.ones((2, 3), dtype=np.float32)
    ids = {
        desk.id_of({"a": 1}),
        desk.id_of({"a": 2}),
        desk.id_of({"a": 1}, {"x": one}),
        desk.id_of({"a": 1}, {"x": other}),
    }
    assert len(ids) == 4 and desk.id_of({"a": 1}, {"x": one.copy()}) in ids


def test_serves_in_turn_clears_and_leaves_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []

    def work(asked: dict[str, Any], given: Any, kept: Kept, tell: Any, root: Any) -> Any:
        order.append(asked["number"])
        time.sleep(0.05)  # so that the times of their answers differ
        if asked["number"] == 1:
            raise InputError("number: not this one", field="number")
        return {"got": asked["number"]}, {"doubled": given["x"] * 2}

    monkeypatch.setattr(desk, "_spawn", lambda root, kind: None)
    monkeypatch.setitem(desk_worker.WORK, "maps", work)
    monkeypatch.setattr(desk_worker, "KEPT_ANSWERS", 1)
    x = {"x": np.arange(3.0)}
    for number in range(3):
        desk.ask("maps", {"number": number}, x)
        time.sleep(0.05)  # so that their times differ
    server = threading.Thread(target=desk_worker.serve, args=("maps", results.root(), 0.3))
    server.start()
    server.join(PATIENCE)
    assert not server.is_alive() and order == [0, 1, 2]
    assert desk.ask("maps", {"number": 1}, x).field == "number"
    last = desk.ask("maps", {"number": 2}, x)
    assert last.facts == {"got": 2} and last.arrays["doubled"].tolist() == [0, 2, 4]
    assert desk.ask("maps", {"number": 0}, x).kind == "waiting"  # its answer made room


def test_forgetting_what_is_worked_on_ends_the_process() -> None:
    stand_in = subprocess.Popen(["sleep", "600"], start_new_session=True)
    born = psutil.Process(stand_in.pid).create_time()
    folder = results.root() / "desk" / "maps"
    (folder / "some").mkdir(parents=True)
    write_json(folder / desk.PROCESS, {"pid": stand_in.pid, "started": born})
    write_json(folder / "some" / desk.QUESTION, {})
    try:
        desk.forget("maps", "other")
        assert is_alive(stand_in.pid, born)
        write_json(folder / "some" / desk.BEGUN, {"at": 0})
        desk.forget("maps", "some")
        assert not is_alive(stand_in.pid, born) and not (folder / "some").exists()
        for name, answer in (("asked", None), ("failed", {"message": "no", "field": None, "advice": None})):
            (folder / name).mkdir()
            if answer:
                write_json(folder / name / desk.ERROR, answer)
            desk.let_go("maps", name)
        assert not (folder / "asked").exists() and (folder / "failed").exists()  # an answer is kept
    finally:
        stand_in.kill()
        stand_in.wait()


def test_least_used_makes_room() -> None:
    kept, made = Kept(2), []
    for key in "abaca":
        kept.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c"]
    kept.get("b", lambda: made.append("b"))
    assert made == ["a", "b", "c", "b"]
