"""Flow: its determinant against the Jacobian, its inverse, its likelihood, and which loss reaches which parameters."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from isoviz.methods import flow
from isoviz.methods.flow import bits_per_dimension, gaussianise, make_map, plan
from tests.methods import attaching
from tests.methods.attaching import reps

attached = partial(attaching.attached, "flow", 6)


def restore(parameters, steps, gaussian):
    """h = f(z): the steps of `gaussianise` undone from the last to the first."""
    points = gaussian[:, : steps[-1].width]
    for number in range(len(steps) - 1, -1, -1):
        own, step = flow._of_step(parameters, number), steps[number]
        if step.split:
            points = torch.cat([points, gaussian[:, step.width - step.split : step.width]], dim=1)
        points = 2 * points - flow._couple(own, step, points)  # the half that decides on the shift is as it was
        lower, upper = flow._triangles(own["lu"])
        points = torch.linalg.solve(lower + torch.eye(step.width, dtype=lower.dtype), points.T)
        points = torch.linalg.solve(upper, points).T
        points = points * (-own["log_scale"]).exp() - own["shift"]
    return points


def skewed(n=400, d=6, seed=0):
    """Correlated, unequal variances, off the origin, and not Gaussian."""
    generator = np.random.default_rng(seed)
    mixing = np.random.default_rng(1).normal(size=(d, d)) * np.geomspace(3, 0.1, d)
    points = generator.normal(size=(n, d)) @ mixing.T
    points[:, 0] = np.exp(0.5 * generator.normal(size=n))
    return torch.tensor(points + 2, dtype=torch.float32)


def scrambled(width, levels, depth, seed=0):
    """A map that is no longer the identity anywhere, in float64."""
    steps = plan(width, levels, depth)
    state = make_map(steps, 32).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in state.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += (0.5 if parameter.ndim == 1 else 1 / math.sqrt(parameter.shape[1])) * noise
    return steps, {name: value.detach() for name, value in state.named_parameters()}


SIZES = [(2, 1, 1), (3, 1, 2), (4, 2, 3), (5, 2, 2), (8, 3, 3), (9, 3, 2)]


@pytest.mark.parametrize(("width", "levels", "depth"), SIZES)
def test_determinant_matches_the_jacobian(width, levels, depth):
    steps, parameters = scrambled(width, levels, depth)
    for seed in range(3):
        point = torch.randn(width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(lambda x: gaussianise(parameters, steps, x[None])[0][0], point)
        _, log_det = gaussianise(parameters, steps, point[None])
        expected = torch.linalg.slogdet(jacobian)
        assert float(expected.sign) == 1
        torch.testing.assert_close(log_det, expected.logabsdet, rtol=1e-8, atol=1e-8)
        assert float(log_det.abs()) > 0.1


@pytest.mark.parametrize(("width", "levels", "depth"), [*SIZES, (17, 3, 3)])
def test_there_and_back(width, levels, depth):
    steps, parameters = scrambled(width, levels, depth)
    points = torch.randn(20, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gaussian, _ = gaussianise(parameters, steps, points)
    assert gaussian.shape == points.shape
    assert float((gaussian - points).abs().max()) > 0.1
    torch.testing.assert_close(restore(parameters, steps, gaussian), points, rtol=1e-6, atol=1e-6)


def test_likelihood_is_the_density_of_a_gaussian_that_the_map_undoes():
    # h = 3 x + 1 with x standard normal: the map (h − 1)/3 gives the entropy of N(1, 9), ½ log2(2πe 9) bits
    steps = plan(4, 1, 1)
    state = make_map(steps, 32)
    state.step0.shift.data.fill_(-1.0)
    state.step0.log_scale.data.fill_(-math.log(3.0))
    points = 1 + 3 * torch.randn(50_000, 4, generator=torch.Generator().manual_seed(0))
    bits = bits_per_dimension(*gaussianise(dict(state.named_parameters()), steps, points))
    assert float(bits.detach()) == pytest.approx(0.5 * math.log2(2 * math.pi * math.e * 9), abs=0.01)


def test_the_first_training_batch_starts_the_actnorms_once():
    points = skewed()
    method = attached()
    out = method.transform(reps(points), training=True)
    torch.testing.assert_close(out.mean(0), torch.zeros(6), rtol=0, atol=1e-5)
    torch.testing.assert_close(out.std(0, correction=0), torch.ones(6), rtol=1e-4, atol=0)
    before = {name: value.clone() for name, value in method.state.state_dict().items()}
    method.transform(reps(5 * skewed(seed=3) + 1), training=True)
    method.transform(reps(skewed(seed=4)), training=False)
    assert all(torch.equal(before[name], value) for name, value in method.state.state_dict().items())


def train(method, points, steps=300):
    group = {name: value for name, value in method.parameter_groups()[0].items() if name != "clip"}
    optimizer = torch.optim.AdamW([{**group, "lr": 1e-2}])
    losses = []
    for number in range(steps):
        batch = reps(points[(number % 5) :: 5])
        method.transform(batch, training=True)
        optimizer.zero_grad()
        loss = method.penalties(batch)["flow"]
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_each_loss_reaches_only_what_is_its_own():
    method = attached()
    encoder = torch.nn.Linear(6, 6)
    points = encoder(skewed(16))
    gaussian = method.transform(reps(points), training=True)
    train_only = list(method.state.parameters())
    gaussian.square().sum().backward(retain_graph=True)  # a task loss
    assert all(parameter.grad is None for parameter in train_only)
    assert float(encoder.weight.grad.abs().max()) > 0
    encoder.zero_grad(set_to_none=True)
    method.penalties(reps(points))["flow"].backward()
    assert encoder.weight.grad is None
    assert encoder.bias.grad is None
    # a coupling whose last layer is still zero passes no gradient to the layers before it
    moved = {name for name, value in method.state.named_parameters() if value.grad is not None and value.grad.any()}
    assert {"shift", "log_scale", "lu", "weight3", "bias3"} <= {name.split(".")[1] for name in moved}
    assert all(parameter.grad is not None for parameter in train_only)  # none is unused in a distributed step


def test_the_tasks_gradient_matches_the_map():
    method = attached()
    train(method, skewed(), steps=20)
    points = skewed(3, seed=2).requires_grad_()
    method.transform(reps(points), training=True)[:, 1].sum().backward()
    fixed = {name: value.detach().double() for name, value in method.state.named_parameters()}
    wide, step = points.detach().double(), 1e-5
    for row, column in [(0, 0), (1, 3), (2, 5)]:
        shift = torch.zeros_like(wide)
        shift[row, column] = step
        ends = [gaussianise(fixed, method.steps, wide + sign * shift)[0][:, 1].sum() for sign in (1, -1)]
        slope = float(ends[0] - ends[1]) / (2 * step)
        assert float(points.grad[row, column]) == pytest.approx(slope, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("levels", "depth"), [(3, 3), (1, 9)])
def test_constant_dimensions_do_not_wreck_the_training(levels, depth):
    # without the blur, what is left of the two is stretched until the likelihood leaps (measured: 1e5 bits in place of −0.1)
    points = skewed()
    points[:, 0] = 1.0
    points[:, 1] = 1 - 6e-8 * (torch.arange(400) % 2)
    method = attached(levels=levels, depth=depth)
    losses = train(method, points, steps=150)
    assert max(losses) < losses[0] + 1
    assert losses[-1] < losses[0] - 1
    assert float(method.transform(reps(points), training=False).detach().abs().max()) < 20


def test_the_noise_is_a_thousandth_and_resumes_where_it_stopped():
    points = skewed(64)
    method, resumed = attached(), attached()
    method.transform(reps(points), training=True)
    first, second = (float(method.penalties(reps(points))["flow"].detach()) for _ in range(2))
    exact = float(
        bits_per_dimension(*gaussianise(dict(method.state.named_parameters()), method.steps, points)).detach()
    )
    assert first != second
    assert first == pytest.approx(exact, abs=0.02)
    resumed.state.load_state_dict(method.state.state_dict())
    assert float(resumed.penalties(reps(points))["flow"].detach()) == float(
        method.penalties(reps(points))["flow"].detach()
    )
