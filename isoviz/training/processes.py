"""The processes that train one run together. A single process is the usual case and has no overhead."""

from __future__ import annotations

from typing import Any, TypeVar

from accelerate import PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list, gather_object

from isoviz import devices

Answer = TypeVar("Answer")


def begin() -> bool:
    """Reset accelerate's state from an earlier run in this process; returns whether this is the main process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    state = PartialState(cpu=on_cpu())
    if state.device.type == "cpu":  # also for a kind of accelerator that accelerate does not know
        state.device = devices.current()
    return state.is_main_process


def broadcast(answer: Answer) -> Answer:
    """The main process's value, on all processes."""
    answers = [answer]
    broadcast_object_list(answers)
    return answers[0]


def gather(item: Any) -> list[Any]:
    """Every process's item, ordered by rank, on all processes."""
    items: list[Any] = gather_object([item])
    return items


def on_cpu() -> bool:
    """Whether to compute on the CPU: accelerate then joins processes only if told so."""
    return devices.current().type == "cpu"
