"""Two processes give the one-process result: every method, three steps, dropout off, the same rows per step."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.training import checkpoints
from tests.methods.test_conformance import PARAMS, SLUGS

ROOT = Path(__file__).resolve().parents[2]


def configuration(model: Path, data: Path, slug: str, batch_size: int) -> RunConfig:
    return RunConfig.checked(
        model=str(model), task="glue/cola", data=str(data), method=slug,
        params=methods.check_params(slug, PARAMS.get(slug, {})), epochs=1, learning_rate=3e-3, batch_size=batch_size,
        batching="shuffled", max_train=48, max_eval=30, precision="no", threads=1,
    )  # fmt: skip


def run(config: RunConfig, folder: Path, processes: int) -> tuple[dict[str, torch.Tensor], list[dict]]:
    """Weights of the last checkpoint and the events of a run by that many processes on the loopback."""
    folder.mkdir()
    (folder / "config.json").write_text(config.model_dump_json())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.training.two_processes"]
    command += [str(folder / name) for name in ("config.json", "run", "events.json")]
    started = []
    for rank in range(processes):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
        if processes > 1:
            environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes)}
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        log = (folder / f"log-{rank}.txt").open("w")
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT))
    try:
        codes = [process.wait(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    logs = "\n".join(path.read_text()[-3000:] for path in sorted(folder.glob("log-*.txt")))
    assert codes == [0] * processes, logs
    newest = checkpoints.newest(folder / "run")
    assert newest is not None
    return load_file(newest / "model.safetensors"), json.loads((folder / "events.json").read_text())


@pytest.mark.parametrize("slug", SLUGS)
def test_two_processes_give_the_one_process_result(tiny_models, cola, tmp_path, slug):
    model = tiny_models("bert", dropout=0.0)
    alone, alone_events = run(configuration(model, cola, slug, 16), tmp_path / "one", 1)
    shared, shared_events = run(configuration(model, cola, slug, 8), tmp_path / "two", 2)
    assert alone.keys() == shared.keys()
    for name, value in alone.items():
        torch.testing.assert_close(
            shared[name], value, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )

    def of(events: list[dict], kind: str) -> list[dict]:
        return [event for event in events if event["kind"] == kind]

    assert len(of(alone_events, "evaluated")) == len(of(shared_events, "evaluated"))
    for one, other in zip(of(alone_events, "stepped"), of(shared_events, "stepped"), strict=True):
        assert other["losses"] == pytest.approx(one["losses"], rel=2e-3, abs=1e-4)
    for one, other in zip(of(alone_events, "measured"), of(shared_events, "measured"), strict=True):
        assert other["isoscore_star"] == pytest.approx(one["isoscore_star"], rel=5e-3, abs=1e-4)
        assert [other["clouds"]["head"][key] for key in ("n", "d")] == [
            one["clouds"]["head"][key] for key in ("n", "d")
        ]
