"""Further validation splits (MNLI's mismatched genres): scored after each epoch, but not measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isoviz.models.adapter import HeadedModel
    from isoviz.training.heads import Head
    from isoviz.training.rows import Scored


def metrics(
    model: HeadedModel,
    head: Head,
    splits: Mapping[str, Scored],
    accelerator: Accelerator,
    gather: Callable[[Any], list[Any]],
    check: Callable[[], None],
) -> dict[str, float | None]:
    """`METRIC_SPLIT` → value, for every metric of the task on every split.

    Args:
        gather: collects every process's item on all processes.
        check: called between batches; raises to abort.
    """
    model.eval()
    values: dict[str, float | None] = {}
    for name, split in splits.items():
        predicted: list[tuple[int, Any]] = []
        with torch.inference_mode():
            for batch in split.batches:
                check()
                items = batch.pop("item").tolist()
                batch = {key: value.to(accelerator.device) for key, value in batch.items()}
                with accelerator.autocast():
                    predicted += zip(items, head.predict(model, model(**batch), batch), strict=True)
        in_order = sorted((pair for process in gather(predicted) for pair in process), key=itemgetter(0))
        answers = head.answers(split.frame, split.encoded, [value for _, value in in_order])
        scored = head.evaluate(split.frame, answers)
        values |= {f"{metric}_{name}": value for metric, value in scored.items()}
    return values
