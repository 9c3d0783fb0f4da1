"""Faults on purpose: processes killed at random events, servers crashed, disks filled; and proof that a run loses nothing.

A run under faults must report the same as an undisturbed run: every event, metric and measure, to the last bit.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.errors import StoreError
from isoviz.events import ENDINGS, Event, Finished, Resumed, parse_event
from isoviz.jobs.processes import Process, is_alive
from isoviz.runs import planning
from isoviz.runs.store import RunRow, Store

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE: Final = 800.0
SIZE: Final = {"epochs": 3, "max_train": 64, "max_eval": 32, "batch_size": 8}
"""Of a run: 24 optimiser steps."""
_PARAMS: Final[dict[str, dict[str, Any]]] = {"isolayer": {"layer_epochs": 3, "layer_batch": 16}}
_VARYING: Final = {"samples_per_second", "eta_seconds", "step_seconds", "startup_seconds", "timing"}
_OVER: Final = {"finished", "failed", "diverged"}
_NOT_RESULTS: Final = {"entered", "started", "resumed", "checkpointed"} | (ENDINGS - {"finished"})


def config(method: str) -> RunConfig:
    """A short run of the bundled model; it leaves a checkpoint several times in an epoch, as often as the clock will have it."""
    (made,) = planning.expand(
        ["demo/tiny-bert"],
        ["demo/acceptability"],
        [(method, dict(_PARAMS.get(method, {})))],
        [0],
        **SIZE,
        threads=1,
        checkpoint_minutes=0.002,
    )
    return made


def options(method: str) -> list[str]:
    """The same run as options of `isoviz train`."""
    words = ["--model", "demo/tiny-bert", "--task", "demo/acceptability", "--method", method, "--threads", "1"]
    words += [word for name, value in _PARAMS.get(method, {}).items() for word in ("--set", f"{name}={value}")]
    words += ["--checkpoint-minutes", "0.002"]
    return words + [word for name, value in SIZE.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def slugs() -> list[str]:
    """All methods."""
    return list(methods.catalogue())


def results(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The valid events in order, without times, phases, and facts that a `Resumed` invalidates.

    Evaluations after the last checkpoint are repeated and must give the same values.
    """
    by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for event in events:
        if isinstance(event, Resumed):
            by_key = {key: fact for key, fact in by_key.items() if fact["step"] <= event.step}
        elif event.kind not in _NOT_RESULTS:
            fact = event.model_dump(mode="json", exclude=_VARYING)
            key = (fact["kind"], fact.get("step"), fact.get("epoch"))
            assert by_key.setdefault(key, fact) == fact, f"{key} was another before"
    return list(by_key.values())


def stored(store: Store, run_id: str) -> list[Event]:
    """All events of a run, which are numbered without a gap."""
    events: list[Event] = []
    while batch := store.events(run_id, after=len(events)):
        assert [seq for seq, _ in batch] == list(range(len(events) + 1, len(events) + len(batch) + 1))
        events += [parse_event(body) for _, body in batch]
    return events


def undisturbed(cfg: RunConfig, folder: Path) -> list[dict[str, Any]]:
    """The events of the run, in a fresh process: other tests leave this one's BLAS with other threads, and last digits depend on them."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(_events, cfg, folder).result()


def _events(cfg: RunConfig, folder: Path) -> list[dict[str, Any]]:
    from isoviz.training.loop import train

    events: list[Event] = []
    train(cfg, events.append, lambda: False, folder)
    return results(events)


@dataclass
class Outcome:
    """The outcome of one run under faults.

    Attributes:
        faults: the injected faults.
        same: whether it reports what the undisturbed run reports.
        fallbacks, mid_epoch: resumes that went on from an older checkpoint; from one inside an epoch.
    """

    name: str
    faults: list[str] = field(default_factory=list)
    same: bool = False
    fallbacks: int = 0
    mid_epoch: int = 0
    trouble: str = ""


def judge(outcome: Outcome, store: Store, run_id: str, expected: list[dict[str, Any]]) -> Outcome:
    """Compare a run with the undisturbed one."""
    row = store.get(run_id)
    if row.status != "finished":
        outcome.trouble = f"{row.status}: {row.error}"
        return outcome
    events = stored(store, run_id)
    steps = SIZE["max_train"] // SIZE["batch_size"]
    resumed = [event for event in events if isinstance(event, Resumed)]
    outcome.mid_epoch = sum(event.step % steps > 0 for event in resumed)
    outcome.fallbacks = sum(bool(event.warning) for event in resumed)
    try:
        stored_results = results(events)
    except AssertionError as error:
        outcome.trouble = str(error)
        return outcome
    outcome.same = stored_results == expected
    if not outcome.same:
        differing = [one["kind"] for one, other in zip(stored_results, expected, strict=False) if one != other]
        outcome.trouble = f"{len(stored_results)} facts for {len(expected)}, differing: {differing[:3]}"
    return outcome


def until(true: Callable[[], object], description: str) -> None:
    """Wait for a condition; retries while the store is unavailable."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if true():
                return
        except StoreError:
            pass
        assert time.monotonic() < deadline, f"never: {description}"
        time.sleep(0.005)


def at_random_event(
    store: Store, run_id: str, expected: int, draw: random.Random, over: Callable[[], object] = lambda: False
) -> str | None:
    """Wait until a running run has reported a random number of events more; the kind of the last, None if it has ended.

    Args:
        expected: at most so many.
        over: whether the process that runs it has ended.
    """
    reached: list[str] = []
    begin = len(store.events(run_id))
    target = begin + draw.randint(1, max(2, expected))

    def there() -> bool:
        batch = store.events(run_id)
        reached[:] = [event["kind"] for _, event in batch]
        return len(batch) >= target or (reached and reached[-1] in _OVER) or over()

    until(there, f"{target} events of {run_id}")
    return None if reached[-1] in _OVER or len(reached) < target else reached[-1]


# ---------------------------------------------------------------------------------------------------------- commands


def command(*words: str, store: str) -> subprocess.Popen[str]:
    """`isoviz …` as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "isoviz", *words, "--store", store, "--json"],
        cwd=ROOT,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "TQDM_DISABLE": "1"}


def begin_by_command(store: Store, method: str) -> tuple[subprocess.Popen[str], str]:
    """Start a run as `isoviz train` does; the process, and the run's id."""
    before = {row.id for row in store.list()}
    process = command("train", *options(method), store=store.url)

    def created() -> bool:
        assert process.poll() is None, process.communicate()
        return any(row.id not in before for row in store.list())

    until(created, "the run is created")
    return process, next(row.id for row in store.list() if row.id not in before)


def killed_commands(
    store: Store, method: str, kills: int, expected: list[dict[str, Any]], draw: random.Random
) -> Outcome:
    """A run of the command line, killed several times and resumed immediately each time, without an app."""
    outcome = Outcome(f"{method}, command line")
    process, run_id = begin_by_command(store, method)
    while len(outcome.faults) < kills:
        running = process
        kind = at_random_event(
            store, run_id, 2 * len(expected) // (kills + 1), draw, lambda running=running: running.poll() is not None
        )
        if kind is None:
            break
        process.kill()
        process.communicate()
        outcome.faults.append(kind)
        process = command("runs", "resume", run_id, store=store.url)
    _, errors = process.communicate(timeout=PATIENCE)
    if store.get(run_id).status != "finished":
        outcome.trouble = errors[-300:]
        return outcome
    return judge(outcome, store, run_id, expected)


# --------------------------------------------------------------------------------------------------------------- apps

_APP: Final = """
import sys, time
from isoviz.jobs import prepared
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

prepared.MEMORY = 0  # however small the machine
runner = Runner(Store(sys.argv[1]), sys.argv[3].split(), train=sys.argv[2])
runner.start()
print("started", flush=True)
time.sleep(3600)
"""


def start_app(store: Store, train: str = "isoviz.training.loop:train", slots: str = "cpu") -> subprocess.Popen[str]:
    """A process with a runner, as the app has one."""
    process = subprocess.Popen(
        [sys.executable, "-c", _APP, store.url, train, slots], cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    return process


def end_app(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def kill_worker(store: Store, run_id: str) -> bool:
    """End the living process of a run and all it started as the system's out-of-memory killer does: nothing is saved.

    `Process.kill` first sends a polite signal, on which a worker saves a checkpoint.
    """
    row = store.get(run_id)
    if row.pid is None or row.pid_started is None or not is_alive(row.pid, row.pid_started):
        return False
    os.killpg(row.pid, signal.SIGKILL)  # a worker leads its own process group
    worker = Process(row.pid, row.pid_started)
    until(lambda: worker.gone, "the worker is gone")
    return True


def resume_lost(store: Store, run_id: str) -> bool:
    """Queue a run again whose worker was killed, once the app has noticed; False if it had finished before."""
    until(lambda: store.get(run_id).status in ENDINGS, "the app notices")
    status = store.get(run_id).status
    if status == "finished":
        return False
    assert status == "lost", status
    store.requeue(run_id)
    return True


def killed_workers(
    store: Store, method: str, kills: int, expected: list[dict[str, Any]], draw: random.Random
) -> Outcome:
    """A run of a living app whose worker is killed several times."""
    outcome = Outcome(f"{method}, app")
    (run_id,) = store.create([config(method)])
    while len(outcome.faults) < kills:
        kind = at_random_event(store, run_id, 2 * len(expected) // (kills + 1), draw)
        if kind is None or not kill_worker(store, run_id) or not resume_lost(store, run_id):
            break
        outcome.faults.append(kind)
    until(lambda: store.get(run_id).status in ENDINGS, "the run ends")
    return judge(outcome, store, run_id, expected)


def killed_app(
    store: Store, method: str, expected: list[dict[str, Any]], draw: random.Random, *, with_worker: bool
) -> Outcome:
    """A run whose app is killed once, and started again.

    Args:
        with_worker: whether the run's worker is killed too; otherwise it continues under the next app.
    """
    outcome = Outcome(f"{method}, app {'and worker ' if with_worker else ''}killed")
    app = start_app(store)
    try:
        (run_id,) = store.create([config(method)])
        kind = at_random_event(store, run_id, len(expected), draw)
        end_app(app)
        killed = not with_worker or kill_worker(store, run_id)
        if kind is not None and killed and store.get(run_id).status != "finished":
            outcome.faults.append(kind)
        app = start_app(store)
        if with_worker and killed:
            resume_lost(store, run_id)
        until(lambda: store.get(run_id).status in ENDINGS, "the run ends")
        return judge(outcome, store, run_id, expected)
    finally:
        end_app(app)


# ------------------------------------------------------------------------------------------------- databases and disks


def crashed_server(
    server: Any, store: Store, method: str, expected: list[dict[str, Any]], draw: random.Random
) -> Outcome:
    """A run of the command line whose PostgreSQL server crashes, and is started again a moment later."""
    outcome = Outcome(f"{method}, PostgreSQL crashed")
    process, run_id = begin_by_command(store, method)
    kind = at_random_event(store, run_id, len(expected), draw)
    server.crash()
    outcome.faults.append(str(kind))
    time.sleep(draw.uniform(0.0, 2.0))
    server.start()
    process.communicate(timeout=PATIENCE)
    until(lambda: store.get(run_id), "the store answers")
    if store.get(run_id).status != "finished":
        command("runs", "resume", run_id, store=store.url).communicate(timeout=PATIENCE)
    return judge(outcome, store, run_id, expected)


def filled_disk(
    store: Store, disk: Path, method: str, expected: list[dict[str, Any]], draw: random.Random
) -> tuple[Outcome, RunRow]:
    """A run of the command line whose disk, the store's own, is full from a random event on, until the command has ended.

    Returns:
        The outcome, and the run's row when the disk was full.
    """
    outcome = Outcome(f"{method}, disk filled")
    process, run_id = begin_by_command(store, method)
    kind = at_random_event(store, run_id, len(expected), draw)
    filler = disk / "filler"
    fill(filler)
    outcome.faults.append(str(kind))
    deadline = time.monotonic() + 120.0
    while process.poll() is None and time.monotonic() < deadline:
        fill(filler)
        time.sleep(0.05)
    row = store.get(run_id)
    filler.unlink()
    process.communicate(timeout=PATIENCE)
    row = row if row.status in ENDINGS else store.get(run_id)
    if row.status != "finished":
        command("runs", "resume", run_id, store=store.url).communicate(timeout=PATIENCE)
    return judge(outcome, store, run_id, expected), row


def fill(filler: Path) -> None:
    """Fill the rest of a disk."""
    with filler.open("ab", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2


# -------------------------------------------------------------------------------------------------- many at one queue

_WORKER: Final = """
import sys, time
from pathlib import Path
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from tests.runs.faults import no_op

store, halt = Store(sys.argv[1]), Path(sys.argv[2])
halt.with_name(f"ready-{sys.argv[3]}").touch()
while not halt.exists():
    row = store.claim(f"worker {sys.argv[3]}", "cpu")
    if row is None:
        time.sleep(0.02)
    else:
        execute(store, row.id, train=no_op)
"""


def no_op(
    config: RunConfig, emit: Callable[[Event], None], should_stop: object, run_dir: Path, resume: bool = False
) -> None:
    """A run that notes that it ran."""
    with (run_dir / "ran").open("a") as file:
        file.write(f"{os.getpid()}\n")
    emit(Finished(metrics={}, isotropy={}, timing={}))


def share_queue(store: Store, runs: int, folder: Path, *, apps: int = 2, workers: int = 4) -> dict[str, int]:
    """Runs shared by all of them: how many finished, were lost, and ran twice, and who ran them."""
    halt = folder / "halt"
    started = [start_app(store, train="tests.runs.faults:no_op") for _ in range(apps)]
    at_work = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, store.url, str(halt), str(number)], cwd=ROOT, env=_environment()
        )
        for number in range(workers)
    ]
    try:
        until(lambda: len(list(folder.glob("ready-*"))) == workers, "all workers are there")
        ids = store.create([RunConfig(seed=seed) for seed in range(runs)])
        until(lambda: store.counts()["queued"] + store.counts()["running"] == 0, "the queue is empty")
        halt.touch()
    finally:
        for process in started:
            end_app(process)
        for worker in at_work:
            worker.kill() if not halt.exists() else worker.wait(timeout=60)
    rows = store.list()
    ran = [len((store.folder_of(run_id) / "ran").read_text().split()) for run_id in ids]
    return {
        "finished": sum(row.status == "finished" for row in rows),
        "doubled": sum(times > 1 for times in ran),
        "lost": runs - sum(times >= 1 for times in ran),
        "owners": len({row.owner for row in rows}),
    }
