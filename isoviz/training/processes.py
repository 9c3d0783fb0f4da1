"""The processes that train one run together, as the loop sees them. One alone is the usual case, and costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list, gather_object

if TYPE_CHECKING:
    from accelerate import Accelerator

Answer = TypeVar("Answer")


def begin() -> bool:
    """Forget an earlier run of this process, which may have used another precision; whether this is the main process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    return PartialState(cpu=on_cpu()).is_main_process


def broadcast(answer: Answer) -> Answer:
    """The main process's answer, on all of them."""
    answers = [answer]
    broadcast_object_list(answers)
    return answers[0]


def on_cpu() -> bool:
    """Whether there is nothing but the CPU: accelerate joins processes on it only when told so."""
    return not torch.cuda.is_available() and not torch.backends.mps.is_available()


class Processes:
    """Rank, number, and the few things that have to be said between them.

    Attributes:
        rank: of this process; 0 is the main one, which alone reports and writes.
        count: how many.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self.rank: int = accelerator.process_index
        self.count: int = accelerator.num_processes

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def agree(self, answer: Answer) -> Answer:
        """The main process's answer, on all of them."""
        return answer if self.count == 1 else broadcast(answer)

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """Elementwise mean over the processes."""
        return values if self.count == 1 else self.accelerator.reduce(values, reduction="mean")

    def gather(self, item: Any) -> list[Any]:
        """Every process's item, in the order of ranks, on all of them."""
        return [item] if self.count == 1 else gather_object([item])

    def wait(self) -> None:
        """Until all are here."""
        if self.count > 1:
            self.accelerator.wait_for_everyone()
