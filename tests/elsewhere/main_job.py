"""Imports everything, then reads a table, trains a queued run and stops another; `test_elsewhere.py` calls it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from pathlib import Path

import dashboard
import isoviz


def main(folder: Path) -> None:
    """Do it all in an empty folder. Raises what fails."""
    for package in (isoviz, dashboard):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    from isoviz.jobs import processes
    from isoviz.runs import planning
    from isoviz.runs.runner import Runner
    from isoviz.runs.store import Store
    from isoviz.vectors import intake

    assert (sys.platform, processes.sys.platform) == ("linux", "win32")
    rows = "".join(f"{row % 7},{row % 5},{row % 3}\n" for row in range(200))
    (folder / "cloud.csv").write_text(f"a,b,c\n{rows}")
    assert intake.import_file(intake.ImportRequest(file=str(folder / "cloud.csv"))).n == 200

    shared = {"max_train": 64, "max_length": 16}
    (short,) = planning.expand(["demo/tiny-bert"], ["demo/acceptability"], [("isobn", {})], [0], epochs=1, **shared)
    (endless,) = planning.expand(
        ["demo/tiny-bert"], ["demo/acceptability"], [("baseline", {})], [0], epochs=90, **shared
    )
    store = Store(folder / "store")
    finished, stopped = store.create([short, endless])
    runner = Runner(store, ["cpu"])
    runner.start()
    try:
        while store.get(stopped).status != "running":
            time.sleep(0.1)
        assert store.get(finished).status == "finished", store.get(finished).error
        store.request_stop(stopped)
        while store.get(stopped).ended is None:
            time.sleep(0.1)
        assert store.get(stopped).status == "stopped", store.get(stopped).error
    finally:
        runner.close()
        store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
