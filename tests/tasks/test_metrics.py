"""Task metrics on cases whose answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz import tasks
from isoviz.tasks import metrics


@pytest.mark.parametrize(
    ("labels", "predicted", "accuracy", "matthews", "f1"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1], 1.0, 1.0, 1.0),
        ([0, 1, 0, 1], [1, 0, 1, 0], 0.0, -1.0, 0.0),
        ([0, 1, 1, 1], [1, 1, 1, 1], 0.75, 0.0, 6 / 7),
        ([1, 1, 0, 0], [0, 0, 0, 0], 0.5, 0.0, 0.0),
        ([1, 1, 1, 0], [1, 1, 0, 0], 0.75, 1 / np.sqrt(3), 0.8),
    ],
)
def test_by_hand(labels, predicted, accuracy, matthews, f1):
    found = metrics.compute(("accuracy", "matthews", "f1"), np.array(labels), np.array(predicted))
    assert found == pytest.approx({"accuracy": accuracy, "matthews": matthews, "f1": f1})


def test_no_rows_is_undefined():
    assert metrics.compute(("accuracy",), np.array([]), np.array([])) == {"accuracy": None}


def test_majority_is_the_training_sets():
    found = metrics.majority(("accuracy", "matthews"), np.array([1, 1, 0]), np.array([0, 0, 0, 1]))
    assert found == {"accuracy": 0.25, "matthews": 0.0}


def test_every_task_names_metrics_that_exist():
    assert len(tasks.catalogue()) >= 5
    for task in tasks.catalogue().values():
        assert task.primary in task.metrics
        assert set(task.metrics) <= set(metrics.METRICS)
        assert 1 <= len(task.columns) <= 2
