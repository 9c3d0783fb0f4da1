"""A model larger than memory, measured layer by layer while its weights are read from the disk.

    python benchmarks/large_model.py [--billions 8] [--memory GIB] [--rows 64] [--dtype bfloat16] [--folder DIR] [--out docs]

Writes a decoder of Llama's shape with random bfloat16 weights, a shard per layer, and measures all its layers in a process of its own.
`--memory` makes the process believe that only so much is free, so that a smaller machine is tried on a larger one. Peak memory is what
the process itself holds (anonymous pages, read from /proc: Linux only); files that the system caches are not counted. Bar: weights
kept in memory, the sums over tokens, and 3 GiB.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import torch
from _report import ROOT, Table, finish, machine, options
from safetensors.torch import save_file

WIDTH, INNER, WORDS, GIB = 4096, 14336, 32_000, 2**30
MOST_ABOVE = 3 * GIB
"""A layer that is being moved, a batch, the libraries; beside the sums over tokens, (width, width) float64 for each layer."""
_MEASURE = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1)
from isoviz import devices
from isoviz.__main__ import main
if memory := float(sys.argv[1]):
    devices.room = lambda: {"cpu": int(memory * 2**30)}
sys.exit(main(sys.argv[2:]))
"""


def write_model(folder: Path, layers: int) -> int:
    """A checkpoint whose names and shapes transformers itself gives; the number of its weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": layers, "vocab_size": WORDS}
    config = AutoConfig.for_model("llama", **sizes, num_attention_heads=32, num_key_value_heads=8, dtype="bfloat16")
    config.architectures = ["LlamaForCausalLM"]
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    config.save_pretrained(folder)
    for file in (ROOT / "isoviz/demo/tiny-bert").glob("*token*"):
        shutil.copy(file, folder)
    shards: dict[str, dict[str, torch.Size]] = {}
    for name, weight in empty.state_dict().items():
        layer = re.search(r"layers\.(\d+)\.", name)
        shards.setdefault(layer[1] if layer else name, {})[name] = weight.shape
    index: dict[str, str] = {}
    for number, shapes in enumerate(shards.values(), 1):
        name_of_file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        weights = {
            name: torch.ones(shape, dtype=torch.bfloat16)
            if len(shape) == 1
            else torch.empty(shape, dtype=torch.bfloat16).normal_(0, 0.02)
            for name, shape in shapes.items()
        }
        save_file(weights, folder / name_of_file, {"format": "pt"})
        index |= dict.fromkeys(weights, name_of_file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return sum(weight.numel() for weight in empty.state_dict().values())


def held(process: int) -> int:
    """Bytes of the process's anonymous pages: its own data, without files that are mapped or cached."""
    return int(re.search(r"Anonymous: +(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text())[1]) * 1024


def main() -> int:
    parser = options(__doc__, out="scale.md")
    parser.add_argument("--billions", type=float, default=8.0, help="weights, at least 0.5: words and one layer")
    parser.add_argument(
        "--memory", type=float, default=0.0, metavar="GIB", help="free memory to assume; 0: what is free"
    )
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--folder", type=Path, help="where the checkpoint is written (default: the temporary folder)")
    chosen = parser.parse_args()
    per_layer = 2 * WIDTH * WIDTH + 2 * WIDTH * WIDTH // 4 + 3 * WIDTH * INNER
    layers = max(1, round((chosen.billions * 1e9 - 2 * WORDS * WIDTH) / per_layer))
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        count = write_model(Path(folder), layers)
        command = ["measure", "--model", folder, "--task", "demo/acceptability", "--max-eval", str(chosen.rows)]
        options_of = ["--dtype", chosen.dtype, "--batch-size", str(chosen.rows), "--json"]
        started, peak = time.monotonic(), 0
        with tempfile.TemporaryFile() as output:
            measuring = subprocess.Popen(
                [sys.executable, "-c", _MEASURE, str(chosen.memory), *command, *options_of], cwd=ROOT, stdout=output
            )
            while measuring.poll() is None:
                with suppress(OSError, TypeError):
                    peak = max(peak, held(measuring.pid))
                time.sleep(0.5)
            seconds = time.monotonic() - started
            output.seek(0)
            if measuring.returncode:
                return measuring.returncode
            found = json.load(output)
    weights = count * (4 if chosen.dtype == "float32" else 2)
    room = 0.8 * (chosen.memory * GIB or psutil.virtual_memory().available)
    sums = (layers + 1) * WIDTH**2 * 8
    bar = min(weights, room) + sums + MOST_ABOVE
    table = Table(
        "Random weights in Llama's shape, all layers and poolings",
        [
            "weights",
            "layers",
            "in the number format",
            "kept in memory, at most",
            "sums over tokens",
            "peak held",
            "rows",
            "seconds",
        ],
        [
            [
                f"{count / 1e9:.2f} billion",
                str(layers),
                f"{chosen.dtype}, {weights / GIB:.1f} GiB",
                f"{min(weights, room) / GIB:.1f} GiB",
                f"{sums / GIB:.1f} GiB",
                f"{peak / GIB:.1f} GiB",
                str(chosen.rows),
                f"{seconds:.0f}",
            ]
        ],
        [f"{len(found['by_layer'])} records, one for each layer and pooling."],
    )
    missed = [f"peak above {bar / GIB:.1f} GiB"] if peak > bar else []
    about = machine(["torch", "transformers", "accelerate", "safetensors"], "all used")
    return finish(chosen, "large_model", "## A model larger than memory", about, missed, table)


if __name__ == "__main__":
    sys.exit(main())
