"""The file of a watched training: complete, one training each, and readable while it grows."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.watch import Watch, WatchWarning, measures_of, trainings
from isoviz.watch.trainings import Ended, Measured, Training


def trained(watch: Watch, steps: int = 40, collapse_at: int | None = None) -> list[Any]:
    """Batches (16, 8) of a training that gives its vectors itself."""
    generator = np.random.default_rng(0)
    batches = []
    for step in range(steps):
        batch = generator.standard_normal((16, 8))
        if collapse_at is not None and step >= collapse_at:
            batch[:, 1:] *= 1e-3
        batches.append(batch)
        watch.step(batch)
    return batches


def only(folder: Path) -> Training:
    (file,) = trainings.files_in(folder)
    return trainings.read(file)


def test_the_file_says_everything(tmp_path: Path) -> None:
    watch = Watch(store=tmp_path, name="Run *1*/2", warmup=5, measure_every=10, window=160, on_collapse="log")
    batches = trained(watch, collapse_at=20)
    watch.end()
    training = only(tmp_path)
    started = training.started
    assert (started.name, started.model, started.pooling, started.kinds) == ("Run *1*/2", "", "mean", ("alike", "few"))
    assert (started.warmup, started.measure_every, started.window, started.false_alarm_rate) == (5, 10, 160, 0.01)
    assert {"isoviz", "numpy"} <= set(started.versions)
    assert training.file.name.endswith("_Run-1-2.jsonl")
    first = training.all_of(Measured)[0]
    values, missing = measures_of(np.concatenate(batches[:10]).astype(np.float32))
    assert (first.step, first.n, first.d) == (10, 160, 8) and first.missing == missing
    assert first.values == pytest.approx(values) and {"directions_low", "isoscore_unbiased_high"} <= set(values)
    collapse, alarm = training.collapse, watch.alarm
    assert collapse is not None and alarm is not None and 20 < collapse.step == alarm.step
    assert (collapse.collapse, collapse.sentence, collapse.false_alarm_rate) == (alarm.kind, alarm.sentence, 0.01)
    assert training.lines[-1] == Ended(time=training.lines[-1].time, step=40)
    assert training.state() == "ended" and training.step == 40


def test_two_trainings_never_share_a_file(tmp_path: Path) -> None:
    watch = Watch(store=tmp_path / "own.jsonl", measure_every=10)
    trained(watch)
    watch.restart()
    trained(watch, steps=13)
    files = {path.name: trainings.read(path) for path in trainings.files_in(tmp_path)}
    assert {name: one.step for name, one in files.items()} == {"own.jsonl": 40, "own-2.jsonl": 10}
    assert [files[name].state() for name in ("own.jsonl", "own-2.jsonl")] == ["ended", "training"]
    both = [Watch(store=tmp_path / "new" / "folder") for _ in range(2)]
    for step in range(4):
        for one in both:
            one.step(np.eye(8) + step)
    assert both[0].file != both[1].file and len(trainings.files_in(tmp_path / "new" / "folder")) == 2


def test_a_watch_that_is_no_longer_needed_ends_its_file(tmp_path: Path) -> None:
    watch = Watch(store=tmp_path)
    trained(watch, steps=7)
    assert only(tmp_path).state() == "training"
    del watch
    gc.collect()
    assert only(tmp_path).lines[-1].kind == "ended" and only(tmp_path).step == 7


def test_the_app_s_own_folder(tmp_path: Path) -> None:
    watch = Watch(store=True)
    watch.step(np.eye(8))
    assert watch.file is not None and watch.file.parent == tmp_path / "home" / "watched"
    assert watch.file.parent.stat().st_mode & 0o077 == 0
    nothing = Watch(store=False)
    nothing.step(np.eye(8))
    assert nothing.file is None


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    watch = Watch(store=tmp_path / "a.jsonl", measure_every=10)
    trained(watch)
    whole = trainings.read(tmp_path / "a.jsonl")
    content = (tmp_path / "a.jsonl").read_bytes()
    for cut in (1, 30, 200):
        (tmp_path / "b.jsonl").write_bytes(content[:-cut])
        lines = trainings.read(tmp_path / "b.jsonl").lines
        assert lines == (whole.lines if cut == 1 else whole.lines[:-1])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda lines: [lines[0], b"{broken", *lines[1:]], "line 2"),
        (lambda lines: [lines[0], b'{"kind": "ended", "time": 1, "step": "x"}', *lines[1:]], "line 2"),
        (lambda lines: [b"\xff\xfe", *lines], "is not a watched training"),
        (lambda lines: lines * 9, "is larger than"),
    ],
)
def test_other_damage_is_one_line(tmp_path: Path, damage: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(store=tmp_path / "a.jsonl", measure_every=10)
    trained(watch)
    file = tmp_path / "a.jsonl"
    monkeypatch.setattr(trainings, "MOST_JSON", 4 * file.stat().st_size)
    file.write_bytes(b"\n".join(damage(file.read_bytes().splitlines())) + b"\n")
    with pytest.raises(InputError, match=words) as refused:
        trainings.read(file)
    assert refused.value.field == "watched" and "\n" not in str(refused.value)


def test_a_killed_training_is_silent_after_a_while(tmp_path: Path) -> None:
    watch = Watch(store=tmp_path, measure_every=10)
    trained(watch)
    training = only(tmp_path)
    last = training.lines[-1].time
    assert training.state(last + trainings.SILENT_AFTER - 1) == "training"
    assert training.state(last + trainings.SILENT_AFTER + 1) == "silent"
    slow = Training(
        training.file,
        (training.started, *[line.model_copy(update={"time": last + 4000}) for line in training.lines[1:]]),
    )
    assert slow.state(last + 4000 + 2 * trainings.SILENT_AFTER) == "training"  # five such pauses are more


def test_a_place_that_cannot_be_written_names_the_field(tmp_path: Path) -> None:
    (tmp_path / "taken.txt").write_text("")
    with pytest.raises(InputError, match=r"must end in \.jsonl") as refused:
        Watch(store=tmp_path / "taken.txt")
    assert refused.value.field == "store"
    with pytest.raises(InputError, match="cannot be written") as refused:
        Watch(store=tmp_path / "taken.txt" / "runs.jsonl").step(np.eye(8))
    assert refused.value.field == "store"


def test_a_full_disk_does_not_end_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(store=tmp_path, measure_every=10)
    trained(watch, steps=5)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trainings.Record, "write", full)
    with pytest.warns(WatchWarning, match="cannot be written: No space left") as caught:
        trained(watch)
    assert len(caught) == 1 and watch.latest["isotropy/n"] == 40 * 16
