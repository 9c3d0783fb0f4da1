"""Logging a run's numbers to any experiment tracker that accelerate supports."""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from isoviz.config import NO_TRACKER, RunConfig
from isoviz.errors import InputError, one_line
from isoviz.events import Evaluated, Event, Measured, Stepped
from isoviz.metrics.measuring import measurement_json

PROJECT: Final = "isoviz"
FOLDER: Final = "tracker"
"""Folder in a run's folder, for trackers that write files."""

_log = logging.getLogger(__name__)


def check(name: str) -> None:
    """Raise `InputError` unless the tracker's package is installed."""
    if name != NO_TRACKER and find_spec(name) is None:
        package = name.replace("_", "-")
        raise InputError(
            f"report_to: {package} is not installed on this machine; run `pip install {package}`", field="report_to"
        )


@contextmanager
def reporting(
    config: RunConfig, run_dir: Path, emit: Callable[[Event], None], *, here: bool = True
) -> Iterator[Callable[[Event], None]]:
    """Context that returns an `emit` which also logs losses, task metrics and isotropy by optimiser step.

    Args:
        here: whether this process reports, if several train together.

    Raises:
        InputError: the tracker cannot start, for example because it needs a login.
    """
    if config.report_to == NO_TRACKER or not here:
        yield emit
        return
    tracker = _started(config, run_dir)
    responds = True

    def emit_and_log(event: Event) -> None:
        nonlocal responds
        emit(event)
        values = _numbers(event)
        if not responds or not values:
            return
        try:
            tracker.log(values, step=event.step)  # type: ignore[union-attr]
        except Exception as error:  # every tracker raises different errors; none of them must end the run
            responds = False
            _log.warning("report_to: %s failed, the run continues without it: %s", config.report_to, error)

    try:
        yield emit_and_log
    finally:
        if responds:
            with suppress(Exception):
                tracker.finish()


def _started(config: RunConfig, run_dir: Path) -> Any:
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    tracker_class = LOGGER_TYPE_TO_CLASS[config.report_to]
    run, folder = run_dir.name, run_dir / FOLDER
    options = {
        "wandb": {"name": run, "dir": os.environ.get("WANDB_DIR", str(folder))},
        "trackio": {"name": run},
        "mlflow": {"run_name": run},
    }.get(config.report_to, {})
    try:
        folder.mkdir(parents=True, exist_ok=True)  # wandb writes to the working directory if it is missing
        where = (folder,) if tracker_class.requires_logging_directory else ()
        tracker: Any = tracker_class(PROJECT, *where, **options)
        with _without_arguments():
            tracker.start()
        tracker.store_init_configuration(_flat(config))
    except Exception as error:  # every tracker raises different errors
        raise InputError(
            f"report_to: {config.report_to} did not start: {one_line(str(error))}", field="report_to"
        ) from error
    return tracker


@contextmanager
def _without_arguments() -> Iterator[None]:
    """Hide the command line, which trackers record and upload: the URL of a store may hold a password."""
    arguments = sys.argv
    sys.argv = arguments[:1]
    try:
        yield
    finally:
        sys.argv = arguments


def _flat(config: RunConfig) -> dict[str, int | float | str | bool]:
    values = config.model_dump(mode="json", exclude={"params", "own"})
    values |= {f"{config.method}.{name}": value for name, value in config.params.items()}
    return {name: value for name, value in values.items() if isinstance(value, (int, float, str, bool))}


def _numbers(event: Event) -> dict[str, float]:
    match event:
        case Stepped():
            values: dict[str, Any] = {f"loss/{name}": value for name, value in event.losses.items()}
            values |= {"learning_rate": event.learning_rate, "samples_per_second": event.samples_per_second}
        case Evaluated():
            values = {"validation/loss": event.loss} | {f"validation/{name}": n for name, n in event.metrics.items()}
        case Measured():
            values = {f"isotropy/{name}": value for name, value in measurement_json(event.isotropy).items()}
        case _:
            return {}
    return {name: float(n) for name, n in values.items() if isinstance(n, (int, float)) and math.isfinite(n)}
