"""Neither the server nor a page loads torch, transformers or datasets, which cost seconds and hundreds of megabytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
import dashboard.server
from streamlit.testing.v1 import AppTest
from isoviz.runs.store import Store
from tests.dashboard.made_up import config, finish
from tests.dashboard.reading import packages_scanned_once
packages_scanned_once().__enter__()
finish(Store(None), config("istar", 0, {"lam": 1}), 0.75, 0.5)
app = AppTest.from_file("dashboard/app.py", default_timeout=180)
PAGES = "home playground lessons methods explore compare train experiments results tradeoffs whatif ruler papers live run"
for page in PAGES.split():
    app.switch_page(f"../pages/{page}.py").run()
    assert not app.exception, (page, app.exception[0].message)
print(sorted({"torch", "transformers", "datasets", "umap", "accelerate"} & set(sys.modules)))
"""


def test_no_page_imports_the_training_libraries(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "ISOVIZ_HOME": str(tmp_path),
        "ISOVIZ_RUNNER": "off",
        "ISOVIZ_NO_TOKEN": "1",
        "PYTHONPATH": str(ROOT),
    }
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert answer.stdout.strip().splitlines()[-1] == "[]"
