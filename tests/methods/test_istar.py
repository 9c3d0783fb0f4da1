"""I-STAR and CosReg: their terms against their definitions, their statistics against plain covariance."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from isoviz.methods.protocol import Representations, TrainingSample
from tests.methods.attaching import attached
from tests.metrics.reference_clouds import isoscore_by_eigenvalues

make = partial(attached, width=4)


def reps(batch=6, length=7, width=4, layers=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = tuple(torch.randn(batch, length, width, generator=generator) + 1 for _ in range(layers))
    mask = torch.ones(batch, length, dtype=torch.long)
    for row in range(batch):
        mask[row, 2 + row % 5 :] = 0
    return Representations(
        hidden[-1][:, 0], hidden[-1][:, 0], hidden[-1], hidden, mask, torch.randn(2, width, generator=generator)
    )


def kept_points(batch, layers):
    rows = []
    for layer in layers:
        for b in range(batch.attention_mask.shape[0]):
            for t in range(batch.attention_mask.shape[1]):
                if batch.attention_mask[b, t]:
                    rows.append(batch.hidden_states[layer - 1][b, t].double().numpy())
    return np.array(rows)


@pytest.mark.parametrize("zeta", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("layer", [0, 2])
def test_istar_term(zeta, layer):
    batch = reps()
    method = make("istar", lam=-3.0, zeta=zeta, layer=layer)
    shrinkage = np.diag([4.0, 2.0, 1.0, 1.0])
    method.state.shrinkage.copy_(torch.tensor(shrinkage))
    points = kept_points(batch, [1, 2, 3] if layer == 0 else [layer])
    mixed = (1 - zeta) * np.cov(points.T) + zeta * shrinkage
    expected = -3.0 * (1 - isoscore_by_eigenvalues(mixed))
    assert float(method.penalties(batch)["istar"]) == pytest.approx(expected, rel=1e-5)


def test_istar_padding_changes_nothing_unless_requested():
    batch = reps()
    changed = reps()
    for hidden in changed.hidden_states:
        hidden[changed.attention_mask == 0] = 99.0
    method = make("istar", lam=1.0, zeta=0.0)
    assert float(method.penalties(batch)["istar"]) == float(method.penalties(changed)["istar"])
    parity = make("istar", lam=1.0, zeta=0.0, include_padding=True)
    assert float(parity.penalties(batch)["istar"]) != float(parity.penalties(changed)["istar"])


def test_istar_shrinkage_is_the_covariance_of_the_sample():
    batches = [reps(seed=s) for s in range(3)]
    method = make("istar")
    method.refresh(TrainingSample(0, lambda tokens: iter(batches)))
    points = np.concatenate([kept_points(b, [1, 2, 3]) for b in batches])
    np.testing.assert_allclose(method.state.shrinkage.numpy(), np.cov(points.T), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("layer", "tokens"), [(0, 34), (2, 100)])
def test_istar_asks_for_as_many_tokens_as_give_its_points(layer, tokens):
    requests = []

    def batches(count):
        requests.append(count)
        return iter([reps()])

    make("istar", shrinkage_tokens=100, layer=layer).refresh(TrainingSample(0, batches))
    assert requests == [tokens]  # three layers: each token is three points


def pairwise(vectors):
    units = [v / np.linalg.norm(v) for v in vectors]
    total = sum(float(units[i] @ units[j]) for i in range(len(units)) for j in range(len(units)) if i != j)
    return total / len(units) ** 2


def test_cosreg_on_tokens_and_on_the_output_matrix():
    batch = reps()
    on_tokens = make("cosreg", lam=2.0).penalties(batch)["cosreg"]
    assert float(on_tokens) == pytest.approx(2.0 * pairwise(kept_points(batch, [3])), rel=1e-5)
    on_output = make("cosreg", lam=2.0, on="output").penalties(batch)["cosreg"]
    assert float(on_output) == pytest.approx(2.0 * pairwise(batch.output_weight.double().numpy()), rel=1e-5)
