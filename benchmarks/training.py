"""The cost of training: a step of every method over the plain step, our loop against `transformers.Trainer`, IsoLayer's epoch.

    python benchmarks/training.py [--steps 18] [--rounds 3] [--threads N] [--model DIR] [--data DIR] [--quick] [--out docs]

Each on the bundled encoder and on one of MiniLM's size (random weights; `--model DIR`: a real one instead), in float32, on
generated sentences whose lengths are stated. Contenders take turns in one process.

1. A step is what the loop does with a batch of 32: forward with the method's penalty, backward, optimiser, schedule, losses
   read. All methods take it on the same batch, in an order that rotates from batch to batch; figures are medians over the
   batches. The plain step takes part twice, as a measure of the noise. I-STAR's pass for Σ_S before each epoch is timed separately.
2. Samples per second between the end of the first and the end of the last optimiser step of an epoch, so that loading and
   measuring are left out on both sides: ours through `isoviz.training.train`, once with exactly Trainer's batches, once with
   our defaults (batches of similar lengths) against Trainer's (random order); both pad each batch to its longest row. Logging,
   saving, evaluation and gradient clipping are off in Trainer, because our loop has no clipping. With `--data`, also whole epochs
   of 800 real rows in ten rounds, Trainer grouped by length; on an encoder of MiniLM's size whose tokenizer is trained on the rows,
   or on `--model`.
3. IsoLayer's second stage on 2,000 rows: seconds per epoch on the cached vectors (the held-out rows' metric counted in),
   against the one pass of the frozen encoder that made them.

Bars: an I-STAR step within 1.10 times the plain step; samples per second at least 1.0 times Trainer's with the same batches
and 1.3 times with defaults; IsoLayer's epoch at least 50 times faster than the pass. Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# threads wait as every worker's do (`isoviz.jobs.processes.share_cores`); torch reads it when it is loaded
os.environ.update({"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"})

import torch
from _charts import Panel, bars
from _report import Table, machine, write_section
from _training import BATCH, Scale
from _training_layer import LAYER_ROWS, layer_row, layer_table
from _training_pace import pace_rows, pace_table, real_row
from _training_steps import step_table
from _workload import BUNDLED, TASK, Encoder, minilm_of_rows, minilm_size
from transformers.utils import logging

from isoviz import devices, tasks


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=18, help="timed steps per method, at least 15")
    parser.add_argument("--rounds", type=int, default=3, help="rounds against Trainer and of IsoLayer, at least 3")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a real encoder in place of the MiniLM-size one")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="real rows of glue/cola: also compare with Trainer grouped by length"
    )
    parser.add_argument("--parts", nargs="+", choices=("steps", "pace", "layer"), default=["steps", "pace", "layer"])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script; no bar is judged")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write DIR/benchmarks.md and a plot in DIR/images")
    chosen = parser.parse_args()
    if not chosen.quick and (chosen.steps < 15 or chosen.rounds < 3):
        parser.error(f"at least --steps 15 and --rounds 3 (got {chosen.steps} and {chosen.rounds})")
    if chosen.out and len(chosen.parts) < 3:
        parser.error("--out: the documentation holds full runs only; leave --parts out")
    if chosen.quick and chosen.out and chosen.out.resolve() == Path(__file__).resolve().parent.parent / "docs":
        parser.error("--out: the documentation holds full runs only; give --quick another folder")
    return chosen


def encoders(chosen: argparse.Namespace, folder: Path) -> list[Encoder]:
    """The bundled one, and one of MiniLM's size or the one that was given. Small ones train on more rows."""
    if chosen.quick:
        return [Encoder("bundled", BUNDLED, 4 * BATCH), minilm_size(folder, 4 * BATCH, layers=2, width=96, heads=4)]
    if chosen.model:
        return [Encoder("bundled", BUNDLED, 128 * BATCH), Encoder(chosen.model.name, str(chosen.model), 20 * BATCH)]
    return [Encoder("bundled", BUNDLED, 128 * BATCH), minilm_size(folder, 20 * BATCH)]


def main() -> int:
    """Measure, print, write the section and the plot if asked; 1 if a bar is missed."""
    chosen = options()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    threads = chosen.threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    scale = Scale(4, 2, 300) if chosen.quick else Scale(chosen.steps, chosen.rounds, LAYER_ROWS)
    tables: list[Table] = []
    panels: list[Panel] = []
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        chosen_encoders = encoders(chosen, folder / "encoder")
        names = [encoder.name for encoder in chosen_encoders]
        if "steps" in chosen.parts:
            steps = [step_table(encoder, scale) for encoder in chosen_encoders]
            values = {name: list(medians.values()) for name, (_, medians, _) in zip(names, steps, strict=True)}
            panels.append(Panel("One training step of 32 rows", list(steps[0][1]), values))
            for table, _, late in steps:
                show(tables, table)
                missed += late
        if "pace" in chosen.parts:
            compared = [
                pace_rows(encoder, scale, folder / f"rows-{n}", threads) for n, encoder in enumerate(chosen_encoders)
            ]
            drawn = [bar for _, bars_of_encoder, _ in compared for bar in bars_of_encoder]
            real = []
            if chosen.data:
                train_rows = tasks.load(tasks.get(TASK), str(chosen.data)).train
                encoder = (
                    Encoder(chosen.model.name, str(chosen.model), 0)
                    if chosen.model
                    else minilm_of_rows(folder / "real", train_rows)
                )
                row, bar, late = real_row(encoder, scale, chosen.data, threads)
                real, missed = [row], missed + late
                drawn.append(bar)
            by_side = {"ours": [bar[1] for bar in drawn], "Trainer": [bar[2] for bar in drawn]}
            panels.append(Panel("Training, per sample", [bar[0] for bar in drawn], by_side))
            show(tables, pace_table([row for rows, _, _ in compared for row in rows] + real, scale))
            missed += [line for _, _, late in compared for line in late]
        if "layer" in chosen.parts:
            layers = [layer_row(encoder, scale) for encoder in chosen_encoders]
            by_stage = {
                "one epoch of the layer": [ms[0] for _, ms, _ in layers],
                "the pass": [ms[1] for _, ms, _ in layers],
            }
            panels.append(Panel("IsoLayer's second stage", names, by_stage))
            show(tables, layer_table([row for row, _, _ in layers], scale))
            missed += [line for _, _, late in layers for line in late]
    where = machine(["torch", "transformers", "accelerate", "numpy"], f"{threads} threads{gpu()}")
    verdict = "quick sizes, no bar judged" if chosen.quick else "; ".join(missed) if missed else "all bars met"
    print(f"\n{where}\n{verdict}")
    if chosen.out:
        bars(chosen.out / "images" / "benchmark-training.svg", "Training: methods, loop, IsoLayer", panels)
        plot = "![Time of training steps, of the loop beside Trainer, of IsoLayer](images/benchmark-training.svg)"
        parts = ["## Training", where, f"Bars: {verdict}.", *(table.markdown() for table in tables), plot]
        write_section(chosen.out / "benchmarks.md", "training", "\n\n".join(parts))
    return 1 if missed and not chosen.quick else 0


def show(tables: list[Table], table: Table) -> None:
    tables.append(table)
    print(table.text(), flush=True)


def gpu() -> str:
    slot = devices.describe().slots[0]
    return "" if slot.name == "cpu" else f", {slot.label}"


if __name__ == "__main__":
    raise SystemExit(main())
