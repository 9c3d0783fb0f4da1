"""What a run may report, and a run that reports: for the tests of the store."""

from __future__ import annotations

from isoviz.config import RunConfig
from isoviz.events import Diverged, Event, Failed, Finished, Lost, Stepped, Stopped
from isoviz.runs.store import Store
from tests.measured import cloud, measurement

FINISHED = Finished(
    metrics={"accuracy": 0.75},
    isotropy=measurement(cloud("head", 8, 3, [0.5, 1.0], isoscore=0.25), star=0.5),
    timing={"train_seconds": 1.0},
)
FAILED = Failed(error="ValueError", message="no", advice="none")
ENDINGS: dict[str, Event] = {
    "finished": FINISHED,
    "stopped": Stopped(step=4),
    "failed": FAILED,
    "diverged": Diverged(term="task", step=3, message="m", advice="a"),
    "lost": Lost(message="gone", advice="resume"),
}


def step(number: int, total: float = 1.0) -> Stepped:
    """An optimiser step."""
    return Stepped(
        step=number,
        epoch=number / 10,
        losses={"total": total, "task": 0.5},
        learning_rate=1e-3,
        samples_per_second=100.0,
        eta_seconds=3.0,
    )


def begun(store: Store, config: RunConfig) -> str:
    """A running run."""
    (run_id,) = store.create([config])
    row = store.claim("me", "cpu")
    assert row is not None and row.id == run_id
    return run_id
