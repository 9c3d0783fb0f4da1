"""A finished, really trained run of a tiny encoder, in a home that tests copy."""

from __future__ import annotations

import os
from pathlib import Path

from isoviz.config import RunConfig
from isoviz.methods import check_params
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from isoviz.whatif import embeddings
from tests.tiny import TinyModels, write_cola


def train(home: Path, models: TinyModels, method: str = "baseline", *, read: bool = True, **more: object) -> str:
    """Train one run in the store of `home`; its id. With `read` its embeddings are there too."""
    data = home / "cola"
    if not data.exists():
        write_cola(data, train=96, validation=48)
    values: dict[str, object] = {
        "model": str(models("bert")),
        "task": "glue/cola",
        "data": str(data),
        "method": method,
        "params": check_params(method, {}),
        "epochs": 2,
        "learning_rate": 2e-3,
        "batch_size": 16,
        "precision": "no",
        "threads": 1,
        **more,
    }
    store = Store(home)
    (run,) = store.create([RunConfig(**values)])  # type: ignore[arg-type]
    assert execute(store, run).status == "finished", store.get(run).error
    if read:
        before = os.environ.get("ISOVIZ_HOME")
        os.environ["ISOVIZ_HOME"] = str(home)
        try:
            embeddings(run)
        finally:
            if before is not None:
                os.environ["ISOVIZ_HOME"] = before
    store.close()
    return run
