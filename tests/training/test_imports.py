"""A run as a real process: its one document, and its imports, since modules that take a second each are loaded only if needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

UNNEEDED = ("sklearn", "scipy.stats", "peft", "transformers.trainer_utils")
"""For clustering, statistics over runs, LoRA, and schedules that a few lines compute."""
CHECK = """
import subprocess, sys
from isoviz.__main__ import main

started = []
Popen = subprocess.Popen.__init__
subprocess.Popen.__init__ = lambda self, command, *rest, **more: (started.append(command), Popen(self, command, *rest, **more))[1]
code = main(sys.argv[1:])
print("code", code, file=sys.stderr)
print("imported", *sorted(sys.modules), file=sys.stderr)
print("python", *(command for command in started if sys.executable in command), file=sys.stderr)
"""


def test_a_classification_run_of_one_process_imports_no_heavy_modules_that_it_does_not_use(tmp_path: Path) -> None:
    words = ["train", "--epochs", "1", "--max-train", "64", "--max-eval", "40", "--json", "--store"]
    result = subprocess.run(
        [sys.executable, "-c", CHECK, *words, str(tmp_path / "store")],
        env={**os.environ, "ISOVIZ_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [run["status"] for run in json.loads(result.stdout)["runs"]] == ["finished"], "stdout is one document"
    lines = {line.partition(" ")[0]: line.split()[1:] for line in result.stderr.splitlines() if line[:1].isalpha()}
    assert lines["code"] == ["0"]
    assert {"torch", "transformers.modeling_utils"} <= set(lines["imported"])
    assert set(UNNEEDED) & set(lines["imported"]) == set()
    assert lines["python"] == [], "the devices are detected in this process, which imports torch anyway"
