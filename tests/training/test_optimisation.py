"""Who is in which optimiser group, with which rate, decay and limit; in a run, over a stop and a resume."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import GradientState

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.training.optimisation import clip_before_step, make_optimizer, make_scheduler, step_rows_read
from tests.training.running import at_step, config, run


class Small(torch.nn.Module):
    """A model with two parameters and a method with two more."""

    def __init__(self, groups=lambda model: []):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.frozen = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)
        self.own = torch.nn.Linear(2, 2)
        self.hooks = SimpleNamespace(parameter_groups=lambda: groups(self))


def settings(**values):
    return RunConfig.checked(learning_rate=0.1, weight_decay=0.05, **values)


def own_group(model):
    parameters = list(model.own.parameters())
    return [{"params": parameters, "lr": 0.4, "eps": 1e-6, "weight_decay": 0.01, "clip": 1.0}]


def ids(parameters):
    return {id(parameter) for parameter in parameters}


def test_own_group_has_its_own_settings_and_its_parameters_are_in_no_other():
    model = Small(own_group)
    group = own_group(model)
    model.hooks.parameter_groups = lambda: group
    decayed, plain, own = make_optimizer(model, settings()).param_groups
    assert ids(decayed["params"]) == {id(model.linear.weight)}
    assert ids(plain["params"]) == {id(model.linear.bias)}
    assert ids(own["params"]) == ids(model.own.parameters())
    assert (own["lr"], own["eps"], own["weight_decay"]) == (0.4, 1e-6, 0.01)
    assert "clip" not in own  # checkpoints store groups as they are; the limit is the method's to say again
    assert group[0]["clip"] == 1.0


@pytest.fixture(autouse=True)
def _no_earlier_training():
    GradientState._reset_state()  # a training that a test broke off left its data loader there, and its last batch would end a step


def gradients_at_the_step(accelerator, parts, scale):
    """Per step, the gradient norms of the own group and of the linear layer."""
    torch.manual_seed(0)
    model = Small(own_group)
    optimizer = make_optimizer(model, settings())
    seen = []

    def watch(*_):
        norms = [
            math.sqrt(sum(float(p.grad.square().sum()) for p in part.parameters()))
            for part in (model.own, model.linear)
        ]
        seen.append(norms)

    optimizer.register_step_pre_hook(watch)  # after the clipping: hooks run in their order
    prepared, optimizer = accelerator.prepare(model, optimizer)
    points = torch.randn(4 * parts, 3, generator=torch.Generator().manual_seed(1))
    for part in points.chunk(parts):
        with accelerator.accumulate(prepared):
            loss = scale * prepared.own(prepared.linear(part)).sum()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    return seen


def test_only_the_own_groups_gradients_are_cut_and_only_when_they_are_long():
    ((own, linear),) = gradients_at_the_step(Accelerator(cpu=True), 1, 1000.0)
    assert own == pytest.approx(1.0, rel=1e-4)
    assert linear > 100
    ((own, _),) = gradients_at_the_step(Accelerator(cpu=True), 1, 1e-3)
    assert 0 < own < 0.1  # short ones are left as they are


def test_scaled_gradients_are_cut_at_the_scaled_limit():
    # in half precision a fused optimiser is handed scaled gradients and the scale, and divides in its kernel
    parameter = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.AdamW([parameter], lr=1.0, fused=True)
    clip_before_step(optimizer, [parameter], 2.0)
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(float(parameter.grad.norm())))
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(1024.0), torch.tensor(0.0)
    parameter.grad = torch.full((4,), 1e6)
    optimizer.step()
    assert seen == [pytest.approx(2.0 * 1024, rel=1e-5)]
    assert float(optimizer.state[parameter]["exp_avg"].norm()) == pytest.approx(0.1 * 2.0, rel=1e-5)  # 1 − β₁ = 0.1


# ---- in a run ------------------------------------------------------------------------------------------------------------


def losses(events):
    return {event.step: event.losses for event in events if event.kind == "stepped"}


def test_before_the_first_step_every_method_is_the_baseline(tiny_models, cola, tmp_path):
    """A fair comparison by construction: the same new weights, and where nothing changes the forward pass the same batches."""
    evaluated, first_loss = {}, {}
    for slug in methods.catalogue():
        cfg = config(tiny_models("bert"), cola, slug, epochs=1, max_train=8, max_eval=8)
        events = run(cfg, tmp_path / slug, at_step(1))
        evaluated[slug] = next(event.loss for event in events if event.kind == "evaluated")
        first_loss[slug] = losses(events)[1]["task"]
    assert set(evaluated.values()) == {evaluated["baseline"]}
    assert first_loss["baseline"] == first_loss["istar"] == first_loss["cosreg"]


def trained_tables(by_rows, weight_decay, read=300, reload_at=None):
    """A table of 1,000 rows and its optimiser's state after 40 steps of two batches each, which hold tokens below `read`."""
    torch.manual_seed(1)
    table, output = torch.nn.Embedding(1000, 32, padding_idx=0), torch.nn.Linear(32, 2)

    def fresh():
        groups = [{"params": [table.weight], "weight_decay": weight_decay}, {"params": [*output.parameters()]}]
        optimizer = torch.optim.AdamW(groups, lr=1e-3, fused=True)
        if by_rows:
            step_rows_read(optimizer, table)
        return optimizer

    optimizer, generator = fresh(), torch.Generator().manual_seed(3)
    for step in range(40):
        if step == reload_at:
            state = optimizer.state_dict()
            optimizer = fresh()
            optimizer.load_state_dict(state)
        for _ in range(2):
            tokens = torch.randint(0, read, (8, 7), generator=generator)
            output(table(tokens)).square().sum(dim=-1).mean().backward()
        assert step or table.weight.grad.is_sparse is by_rows
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 - step / 40)
        optimizer.step()
        optimizer.zero_grad()
    return table.weight.detach(), optimizer.state_dict()["state"][0]


@pytest.mark.parametrize("read", [300, 900], ids=["few rows", "most rows"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_table_stepped_by_rows_is_the_table_stepped_whole(weight_decay, read):
    whole, state = trained_tables(False, weight_decay, read)
    for reload_at in (None, 7, 30):
        by_rows, its_state = trained_tables(True, weight_decay, read, reload_at)
        torch.testing.assert_close(by_rows, whole, rtol=1e-6, atol=1e-8)
        assert its_state.keys() == state.keys()  # checkpoints of either continue with the other
        for name in state:
            torch.testing.assert_close(its_state[name], state[name], rtol=1e-6, atol=1e-12)
        if reload_at is not None:
            uninterrupted, _ = trained_tables(True, weight_decay, read)
            assert torch.equal(by_rows, uninterrupted)


@pytest.mark.parametrize("schedule", ["constant", "linear", "polynomial"])
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.25])
def test_schedules_are_those_of_transformers(schedule, warmup_ratio):
    from transformers import get_scheduler

    name = {"constant": "constant_with_warmup"}.get(schedule, schedule)
    config = settings(schedule=schedule, warmup_ratio=warmup_ratio)
    ours, theirs = (make_optimizer(Small(), config) for _ in range(2))
    reference = get_scheduler(name, theirs, num_warmup_steps=round(8 * warmup_ratio), num_training_steps=8)
    scheduler = make_scheduler(ours, config, 8)
    for _ in range(9):
        assert scheduler.get_last_lr() == pytest.approx(reference.get_last_lr(), rel=1e-12)
        for one in (ours, theirs, scheduler, reference):
            one.step()
