"""The processes that train one run together. A single process is the usual case and has no overhead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list, gather_object

from isoviz import devices

if TYPE_CHECKING:
    from accelerate import Accelerator

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


def on_cpu() -> bool:
    """Whether to compute on the CPU: accelerate then joins processes only if told so."""
    return devices.current().type == "cpu"


class Processes:
    """Rank and number of processes, and communication between them.

    Attributes:
        rank: rank of this process; only process 0, the main one, reports and writes.
        count: number of processes.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self.rank: int = accelerator.process_index
        self.count: int = accelerator.num_processes

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def broadcast(self, answer: Answer) -> Answer:
        """The main process's value, on all processes."""
        return answer if self.count == 1 else broadcast(answer)

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Elementwise mean over the processes."""
        return values if self.count == 1 else self.accelerator.reduce(values, reduction="mean")

    def gather(self, item: Any) -> list[Any]:
        """Every process's item, ordered by rank, on all processes."""
        return [item] if self.count == 1 else gather_object([item])

    def wait(self) -> None:
        """Wait for all processes."""
        if self.count > 1:
            self.accelerator.wait_for_everyone()
