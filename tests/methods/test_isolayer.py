"""IsoLayer: the balanced loss against hand-made sequences, the layer against closed forms."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import nn

from isoviz import metrics
from isoviz.errors import InputError
from isoviz.methods import get
from isoviz.methods.isolayer import Balance
from isoviz.methods.protocol import Frozen
from tests.methods import attaching

attached = partial(attaching.attached, "isolayer", 12)


def scalar(value):
    return torch.tensor(float(value), dtype=torch.float64, requires_grad=True)


def test_balance_against_a_sequence_by_hand():
    """s = 0.15, start 0, update first: step k moves each mean by 0.15/(1 + k)."""
    balance = Balance(0.5, 0.15)
    # k = 0: means 0.15·(2, 8) = (0.3, 1.2), common 0.75: 2·0.75/0.3 = 5, 8·0.75/1.2 = 5
    assert balance(scalar(2), scalar(8)).item() == pytest.approx(5.0)
    assert balance.means == pytest.approx([0.3, 1.2])
    # k = 1: step 0.075: means 0.3 + 0.075·(1 − 0.3) = 0.3525, 1.2 + 0.075·(10 − 1.2) = 1.86; common 1.10625
    expected = 0.5 * 1 * 1.10625 / 0.3525 + 0.5 * 10 * 1.10625 / 1.86
    assert balance(scalar(1), scalar(10)).item() == pytest.approx(expected)
    # k = 2: step 0.05
    balance(scalar(4), scalar(2))
    assert balance.means == pytest.approx([0.3525 + 0.05 * (4 - 0.3525), 1.86 + 0.05 * (2 - 1.86)])


def test_the_means_carry_no_gradient_and_are_floored():
    balance = Balance(0.5, 0.15)
    task, isotropy = scalar(2), scalar(8)
    balance(task, isotropy).backward()
    assert task.grad.item() == pytest.approx(0.5 * 0.75 / 0.3)
    assert isotropy.grad.item() == pytest.approx(0.5 * 0.75 / 1.2)
    assert math.isfinite(Balance(0.5, 0.15)(scalar(0), scalar(3)).item())


def test_zero_start_with_normalising_first_is_refused():
    kind = get("isolayer")
    with pytest.raises(InputError, match="divides 0 by 0"):
        kind(kind.Params(start="zero", order="normalise_first"))


def task_on(rows=400, width=12, seed=0):
    """Two classes separated along the third dimension, in a cloud with one large direction."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 2
    pooled = torch.randn(rows, width, generator=generator)
    pooled[:, 0] *= 8
    pooled[:, 2] += 4 * (labels - 0.5)
    output = nn.Linear(width, 2)
    with torch.no_grad():
        output.weight.zero_()
        output.weight[1, 2], output.weight[0, 2] = 2.0, -2.0
        output.bias.zero_()
    reports = []
    frozen = Frozen(
        pooled=pooled,
        labels=labels,
        output=output,
        task_loss=nn.functional.cross_entropy,
        metric=lambda logits, truth: float((logits.argmax(1) == truth).float().mean()),
        generator=torch.Generator().manual_seed(seed),
        report=lambda losses, count, rate: reports.append((losses, count, rate)),
        check=lambda: None,
    )
    return frozen, reports


def test_the_full_data_term_is_the_score_of_the_mapped_vectors():
    """First step at the identity: −log IsoScore of the cached vectors themselves."""
    frozen, reports = task_on()
    attached(isotropy="full", layer_epochs=1).fit_frozen(frozen)
    assert reports[0][0]["isotropy"] == pytest.approx(-math.log(float(metrics.isoscore(frozen.pooled))), rel=1e-5)
    other, batch_told = task_on()
    attached(isotropy="batch", layer_epochs=1, holdout=0.0, layer_batch=400).fit_frozen(other)
    assert batch_told[0][0]["isotropy"] == pytest.approx(reports[0][0]["isotropy"], rel=1e-5)


@pytest.mark.parametrize("variant", ["joint", "layer_then_classifier"])
def test_the_variants_move_the_classifier(variant):
    frozen, _ = task_on()
    before = frozen.output.weight.detach().clone()
    attached(variant=variant, layer_epochs=3).fit_frozen(frozen)
    assert not torch.equal(before, frozen.output.weight)


def test_it_stops_early_and_keeps_the_best_epoch():
    """With a metric that never rises after the first epoch, `patience` more epochs are tried, and the first one is kept."""
    frozen, reports = task_on(rows=100)
    values = iter([0.9] + [0.5] * 100)
    frozen.metric = lambda logits, truth: next(values)
    method = attached(patience=3, layer_epochs=50, layer_batch=1000)
    method.fit_frozen(frozen)
    assert len(reports) == 4
    once, _ = task_on(rows=100)
    single = attached(layer_epochs=1, layer_batch=1000)
    single.fit_frozen(once)
    torch.testing.assert_close(method.state[0].weight, single.state[0].weight)
