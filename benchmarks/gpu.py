"""Everything that has to be shown on a real GPU, in one command of a few minutes, without network.

    python benchmarks/gpu.py [--out DIR] [--only NAME,…] [--budget SECONDS] [--quick] [--simulated]

A section is a function that yields rows of name, value and bar (`_sections.py` runs them). DIR/gpu.json is rewritten after every row, and
DIR/gpu.md shows the rows as tables; everything else goes to temporary folders. `--quick` takes tiny sizes, as without a GPU, and no speed
is judged; `--simulated` adds the simulated device of the tests. Exit code 1 if a section failed or a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}  # read when torch is loaded
os.environ |= {"HF_HUB_OFFLINE": "1", "ISOVIZ_EXAMPLES": "off"}

import _sections
import numpy as np
import torch
from _sections import FORK, Rows, Section, row, run
from _steps import BUNDLED, COLA, TASK, Encoder, Lengths, Stepper, in_turns, minilm_size, moment, sentences, write_rows
from transformers.utils import logging

from isoviz import devices, methods, metrics
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer

FIXED = Lengths("128 tokens", float(np.log(126)), 0.0, 126)


class Work(_sections.Work):
    """What a section is given, with the encoder and the runs that several of them train."""

    def encoder(self) -> Encoder:
        """BERT-base's size, 110 million random weights."""
        size = (2, 24, 2) if self.quick else (12, 768, 12)
        return minilm_size(self.folder / "encoder", 0, *size, table=None if self.quick else 30_522)

    def config(self, encoder: Encoder, lengths: Lengths, batch: int, batches: int, **changes: Any) -> Any:
        """A run of one epoch of full batches."""
        from isoviz.config import RunConfig

        data, rows = self.folder / f"{lengths.name}-{batch * batches}", batch * batches
        if not data.exists():
            tokenizer = load_tokenizer(sources.resolve(encoder.model))
            write_rows(data, sentences(tokenizer, lengths, rows, 2), sentences(tokenizer, COLA, 32, 3))
        usual = {"precision": self.precision, "batching": "shuffled", "threads": 1, "epochs": 1}
        values = {"model": encoder.model, "task": TASK, "data": str(data), "batch_size": batch}
        return RunConfig(**{**values, **usual, **changes})


def seconds(call: Callable[[], object], room: float = 0.4, warm: int = 2) -> float:
    """Median seconds of a call, with everything on the device done, after some that are not counted."""
    for _ in range(warm):
        call()
    times: list[float] = []
    began = moment()
    while len(times) < 3 or (len(times) < 50 and time.perf_counter() - began < room):
        start = moment()
        call()
        times.append(moment() - start)
    return statistics.median(times)


def wait(done: Callable[[], bool], most: float) -> bool:
    """Whether it was done within so many seconds."""
    until = time.monotonic() + most
    while not (finished := done()) and time.monotonic() < until:
        time.sleep(0.05)
    return finished


# ------------------------------------------------------------------------------------------------------------- sections


def machine(work: Work) -> Rows:
    """The card, and the two rates that limit everything else."""
    slot = devices.describe().slots[0]
    yield row("device", f"{slot.label}, {slot.memory / 2**30:.0f} GiB")
    size, side = (2**20, 64) if work.quick else (2**30, 8192)
    source = torch.randn(size, device=work.device)
    target = torch.empty_like(source)
    yield row("copy, read and written", 2e-12 * source.nbytes / seconds(lambda: target.copy_(source)), "", "TB/s")
    for dtype in (torch.bfloat16, torch.float32):
        x = torch.randn(side, side, device=work.device).to(dtype)
        rate = 2e-12 * side**3 / seconds(partial(torch.matmul, x, x))
        yield row(f"{side} × {side} product, {str(dtype)[6:]}", rate, "", "TFLOP/s")


def agree(work: Work) -> Rows:
    """The suite of tests/devices with TF32 off, several processes at a time."""
    from tests.devices import comparing

    if work.device.type == "cpu" and not work.simulated:
        yield row("left out", "there is no accelerator")
        return
    names = ["baseline", "istar", "metric isoscore", "transform zca"] if work.quick else list(comparing.cases())
    workers = 1 if work.quick else min(8, os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=FORK) as pool:
        parts = [names[first :: 3 * workers] for first in range(3 * workers)]
        for part in as_completed([pool.submit(_compared, part, not work.simulated) for part in parts if part]):
            for name, outcome in part.result().items():
                problem = outcome.error.strip().splitlines()[-1:]
                found = row(name, outcome.difference or 0.0, f"≤ {outcome.tolerance:g}")
                yield found | {"value": problem[0][:200], "ok": False} if problem else found


def _compared(names: list[str], real: bool) -> Any:
    from tests.devices import comparing

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return comparing.outcomes(names, real)


def train(work: Work) -> Rows:
    """Samples per second against Trainer, and a step of every method."""
    from accelerate import Accelerator
    from training import our_pace, trainer_pace

    from isoviz.training import processes

    encoder = work.encoder()
    for lengths, batch in ((COLA, 32), (FIXED, 32), (COLA, 256), (FIXED, 256)) if not work.quick else ((COLA, 8),):
        title = f"{lengths.name}, batch {batch}"
        if work.left < 35:
            yield row(title, "left out: too little time")
            continue
        config = work.config(encoder, lengths, batch, 3 if work.quick else 40)
        ours, by_length = our_pace(config), our_pace(config.model_copy(update={"batching": "bucketed"}))
        yield row(f"{title}: ours", ours, "", "samples/s")
        if work.simulated:  # which Trainer does not know
            continue
        same, random, grouped = (trainer_pace(config, *how) for how in ((True,), (False,), (False, True)))
        yield work.speed(f"{title}: ours / Trainer, same batches", ours / same, "≥ 1.0")
        bar = "≥ 1.3" if lengths is COLA else ""  # equal lengths leave nothing to gain
        yield work.speed(f"{title}: ours / Trainer, defaults", by_length / random, bar)
        yield row(f"{title}: ours / Trainer grouped by length", by_length / grouped)
    processes.begin()
    accelerator = Accelerator(mixed_precision=work.precision, step_scheduler_with_optimizer=False)
    shape, count = ((8, 16), 5) if work.quick else ((32, 128), 18)
    ids = torch.randint(5, 100, (count, *shape), generator=torch.Generator().manual_seed(0)).to(work.device)
    batches = [{"input_ids": x, "attention_mask": torch.ones_like(x), "labels": x[:, 0] % 2} for x in ids]
    slugs = ("baseline", "istar") if work.quick else methods.catalogue()
    steppers = {slug: Stepper(methods.get(slug), encoder, accelerator, count) for slug in slugs}
    _, took = in_turns(steppers, batches, moment)
    middle = {name: statistics.median(times) for name, times in took.items()}
    yield row("plain step, batch 32 of 128 tokens", plain := middle.pop("baseline"), "", "ms")
    for name, value in middle.items():
        yield work.speed(f"{name}, step / plain step", value / plain, "≤ 2.05" if name == "simcse" else "≤ 1.10")


def penalty(work: Work) -> Rows:
    """Ours against the spectrum, and against the products that the closed form cannot avoid."""
    import penalties

    sizes = [(n, d) for n in (256, 4_096, 49_152, 393_216) for d in (768, 1_024, 4_096)]
    for n, d in [(16, 24), (64, 24)] if work.quick else sizes:
        shrinkage, spread = torch.eye(d, device=work.device), torch.linspace(0.1, 3, d, device=work.device)
        for dtype in (torch.float32, torch.bfloat16):
            title = f"{n:,} × {d:,}, {str(dtype)[6:]}"
            if work.left < 5:
                yield row(title, "left out: too little time")
                continue
            x = (torch.randn(n, d, device=work.device) * spread).to(dtype).requires_grad_()
            ours = partial(metrics.istar_penalty, shrinkage=metrics.Shrinkage(shrinkage), zeta=penalties.ZETA)
            took = seconds(partial(penalties.gradient, ours, x))
            wide = x.detach().float()
            small = wide.T @ wide if n >= d else wide @ wide.T
            least = [partial(torch.matmul, a, b) for a, b in ([(wide.T, wide), (wide, small)] if n >= d else
                     [(wide, wide.T), (small, wide), (wide, shrinkage)])]  # fmt: skip
            yield row(f"{title}, ours", 1e3 * took, "", "ms")
            yield work.speed(f"{title}, ours / its products in float32", took / sum(map(seconds, least)), "≤ 1.5")
            for name, spectrum in (("eigvalsh", penalties.by_eigenvalues), ("svdvals", penalties.by_singular_values)):
                if dtype == torch.float32 and n <= 4_096 and (d <= 1_024 or name == "eigvalsh"):
                    contender = partial(penalties.gradient, partial(spectrum, shrinkage=shrinkage), x)
                    bar = "≥ 5" if (name, d) == ("eigvalsh", 768) else ""
                    yield work.speed(f"{title}, {name} / ours", seconds(contender, warm=1) / took, bar)


def measure(work: Work) -> Rows:
    """Measures of a large cloud on the device, against one product and the CPU."""
    n, d, few = (2_000, 16, 500) if work.quick else (1_000_000, 1_024, 50_000)
    x = torch.randn(n, d, device=work.device) * torch.linspace(0.5, 2, d, device=work.device) + 0.3
    product = seconds(lambda: x.T @ x)
    for function in (metrics.isoscore, metrics.isoscore_unbiased):
        took, name = seconds(partial(function, x)), function.__name__
        yield row(name, 1e3 * took, "", "ms")
        yield row(f"{name} / one product", took / product)
        found, expected = float(function(x[:few])), float(function(x[:few].cpu().double()))
        yield row(f"{name}, relative difference from the CPU", abs(found / expected - 1), "≤ 1e-6")
    found, expected = (metrics.describe(points, twonn=False) for points in (x[:few], x[:few].cpu().numpy()))
    both = [(found[name], value) for name, value in expected.items() if isinstance(value, float)]
    worst = max(abs(value - exact) / max(abs(exact), 1e-3) for value, exact in both)
    yield row("describe, largest relative difference from the CPU", worst, "≤ 1e-6")


def encode(work: Work) -> Rows:
    """Texts per second of our extraction and of the library's: same model, batch and texts, start and loading taken off."""
    from sentence_transformers import SentenceTransformer

    from isoviz.models.extract import layer_views
    from tests.models import sentence_folders

    encoder = work.encoder()
    model = sentence_folders.make(work.folder / "sentences", Path(encoder.model))
    source, tokenizer = sources.resolve(str(model)), load_tokenizer(sources.resolve(encoder.model))
    for lengths, count in ((COLA, 128 if work.quick else 8_192), (FIXED, 64 if work.quick else 2_048)):
        texts = sentences(tokenizer, lengths, count, 5)["sentence"].tolist()
        library = SentenceTransformer(str(model), device=str(work.device))

        def theirs(some: list[str], library: Any = library) -> Any:
            return library.encode(some, batch_size=64, show_progress_bar=False)

        def ours(some: list[str]) -> Any:
            views = layer_views(source, [some], poolings=["mean"], layers="last", batch_size=64)
            return next(iter(views.clouds.values()))

        def rate(call: Callable[[list[str]], Any], texts: list[str] = texts) -> float:
            half = texts[::2]
            return len(half) / max(1e-9, seconds(partial(call, texts), 0, 0) - seconds(partial(call, half), 0, 0))

        found, expected = ours(texts[:64]), theirs(texts[:64])
        gap = float(np.abs(found - expected).max() / np.abs(expected).max())
        yield row(f"{lengths.name}: largest relative difference of the vectors", gap, "≤ 1e-3")
        speeds = rate(ours), rate(theirs)
        yield row(f"{lengths.name}, float32: ours", speeds[0], "", "texts/s")
        yield work.speed(f"{lengths.name}, float32: ours / library", speeds[0] / speeds[1], "≥ 1.0")


def memory(work: Work) -> Rows:
    """A run that does not fit is split and gives the same numbers; nothing is left behind, by a kill neither."""
    from isoviz.runs import planning
    from tests.devices import comparing
    from tests.runs import faults

    if work.simulated:
        name = "batches split when memory runs out"
        outcome = comparing.outcomes([name])[name]
        yield row(name, float("inf") if outcome.error else outcome.difference or 0.0, f"≤ {outcome.tolerance:g}")
    if work.device.type != "cuda":
        yield row("left out", "the rest needs a CUDA device")
        return
    config = work.config(work.encoder(), FIXED, 64, 4, precision="no")

    def trained(name: str, **changes: Any) -> tuple[Any, int]:
        torch.cuda.reset_peak_memory_stats()
        events = comparing.events_of(config.model_copy(update=changes), work.folder / name)
        gc.collect()
        torch.cuda.empty_cache()
        return events, torch.cuda.max_memory_reserved()

    before = torch.cuda.memory_allocated()
    (events, full), (_, half) = trained("whole"), trained("half", batch_size=32)
    whole = comparing.results_of(events)
    yield row("MiB still allocated after two runs", (torch.cuda.memory_allocated() - before) / 2**20, "≤ 1")
    torch.cuda.set_per_process_memory_fraction((half + full) / 2 / torch.cuda.get_device_properties(0).total_memory)
    events, _ = trained("short")
    torch.cuda.set_per_process_memory_fraction(1.0)
    splits = sum("split" in str(event) for event in events)
    yield row(f"splits with {(half + full) / 2**31:.1f} of {full / 2**30:.1f} GiB", splits, "≥ 1")
    last = max(index for index, event in enumerate(events) if event.kind == "started")
    short = dict(zip(whole, comparing.results_of(events[last:]).values(), strict=True))
    yield row("split batches, largest relative difference", comparing.largest_difference(whole, short), "≤ 1e-4")
    free = torch.cuda.mem_get_info()[0]
    task, plain = "demo/acceptability", ("baseline", {})
    configs = planning.expand([BUNDLED], [task], [plain], range(2), epochs=500, max_train=2000)
    with served(work.folder / "one", "cuda:0") as one, served(work.folder / "two", "cuda:0") as two:
        runs = [(store, store.create([config])[0]) for store, config in zip((one, two), configs, strict=True)]
        together = wait(lambda: all(steps(*each) >= 3 for each in runs), 40)
        yield row("two apps train on one GPU at the same time", int(together), "≥ 1")
        for store, run in runs:
            faults.kill_worker(store, run)
        wait(lambda: torch.cuda.mem_get_info()[0] >= free - 2**24, 10)
        held = (free - torch.cuda.mem_get_info()[0]) / 2**20
        yield row("MiB held 10 s after both were killed", held, "≤ 64")


@contextmanager
def served(folder: Path, slot: str) -> Iterator[Any]:
    """A store whose queue a runner serves, as in the app."""
    from isoviz.runs.runner import Runner
    from isoviz.runs.store import Store

    store = Store(folder)
    runner = Runner(store, [slot])
    runner.start()
    runner.expect()
    try:
        yield store
    finally:
        runner.close()
        store.close()


def steps(store: Any, run: str) -> int:
    return sum(event["kind"] == "stepped" for _, event in store.events(run))


def queue(work: Work) -> Rows:
    """Three runs through the store and the runner: start-up, events while they train, one stopped and resumed."""
    from isoviz.runs import planning

    yield row("the GPU is open before a fork", int(devices.opened()), "≤ 0")
    slot = "cuda:0" if torch.cuda.is_available() else "cpu"
    size = {"epochs": 2, "max_train": 128 if work.quick else 2_000, "max_eval": 64, "threads": 1}
    with served(work.folder / "store", slot) as store:
        time.sleep(0 if work.quick else 12)  # someone fills in the form, while the first process imports
        runs = store.create(planning.expand([BUNDLED], ["demo/acceptability"], [("baseline", {})], range(3), **size))

        def ended(run: str) -> bool:
            return store.get(run).ended is not None

        live, started, took = [], [], []
        for number, run in enumerate(runs):
            wait(lambda run=run: steps(store, run) >= 2 or ended(run), 60)
            live.append(steps(store, run) > 0 and not ended(run))
            started.append(next(event for _, event in store.events(run) if event["kind"] == "started"))
            took.append(started[-1]["time"] - store.get(run).started)
            if number == 1:
                store.request_stop(run)
            wait(partial(ended, run), 60)
        yield row("runs whose steps arrived while they trained", sum(live), "≥ 2")
        yield row("runs that stopped when asked to", int(store.get(runs[1]).status == "stopped"), "≥ 1")
        store.requeue(runs[1])
        wait(lambda: store.get(runs[1]).status == "finished", 60)
        finished = sum(store.get(run).status == "finished" for run in runs)
        yield row("runs finished, the stopped one resumed", finished, "≥ 3")
        used = sum(event["device"] == slot.partition(":")[0] for event in started)
        yield row("runs that used the device", used, "≥ 3")
        yield work.speed("from the queue to training, slowest of three", max(took), "≤ 1.5", "s")


SECTIONS = {
    "machine": Section(machine, 10, "Ceilings of this device"),
    "agree": Section(agree, 90, "CPU against device, largest relative difference"),
    "train": Section(train, 130, "Training, BERT-base with random weights, bf16"),
    "penalty": Section(penalty, 45, "I-STAR's penalty, forward and backward"),
    "measure": Section(measure, 35, "A million points of 1,024 dimensions"),
    "encode": Section(encode, 40, "Encoding, BERT-base, against sentence-transformers"),
    "memory": Section(memory, 45, "Memory"),
    "queue": Section(queue, 40, "Runs from the queue"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where gpu.json goes")
    parser.add_argument("--only", metavar="NAME,…", default=",".join(SECTIONS), help="some of %(default)s")
    parser.add_argument("--budget", type=float, default=420.0, metavar="SECONDS", help="in all (default: %(default)g)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; no speed is judged")
    parser.add_argument("--simulated", action="store_true", help="the tests' simulated device, with tiny sizes")
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    quick = chosen.quick or chosen.simulated or not torch.cuda.is_available()
    from isoviz.runs import execution

    execution.prepare()  # imports, once for all sections
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    work = partial(Work, quick=quick, simulated=chosen.simulated)
    return run({name: SECTIONS[name] for name in names}, chosen.out.resolve() / "gpu.json", chosen.budget, work)


if __name__ == "__main__":
    sys.exit(main())
