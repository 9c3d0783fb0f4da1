"""Flow: an invertible map, trained by maximum likelihood, between pooled vectors and a Gaussian (Ding et al. 2022, after BERT-flow).

The map is a pure function of its parameters. The task loss sees detached parameters and the likelihood sees detached inputs, so
neither loss reaches the other's parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoviz.bibliography import entries
from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isoviz.models.hooks import HookedModel

NOISE = 1e-3
"""Standard deviation of the noise added to the vectors in the likelihood, as a share of the first batch's root-mean-square
deviation. A dimension without variance (a saturated pooler has many) has an unbounded density: without noise the map would
stretch it until it overflows. Dimensions narrower than this count as constant, also when the actnorms start."""


class FlowParams(Params):
    weight: float = parameter(
        1.0,
        label="Likelihood weight",
        symbol="w",
        help=(
            "Multiplies the flow's loss. This loss trains only the map, never the encoder, and Adam is almost insensitive to "
            "its scale."
        ),
        source="BERT-flow trains the map alone, with weight 1",
        gt=0,
        le=100,
    )
    levels: int = parameter(
        3,
        label="Levels",
        symbol="L",
        help=(
            "After each level but the last, half of the dimensions skip the remaining levels; the output concatenates all "
            "parts."
        ),
        source="BERT-flow's code; Glow, section 3",
        ge=1,
        le=8,
    )
    depth: int = parameter(
        3,
        label="Steps per level",
        symbol="K",
        help="Each step: actnorm, an invertible linear map, an additive coupling.",
        source="BERT-flow's code; Glow, section 3",
        ge=1,
        le=32,
    )
    hidden: int = parameter(
        32,
        label="Coupling width",
        help="Hidden units of the small network in each coupling.",
        source="BERT-flow's code",
        ge=1,
        le=1024,
    )
    learning_rate: float = parameter(
        1e-3,
        label="Map learning rate",
        symbol="η",
        help=(
            "Adam's learning rate for the map only; it follows the run's schedule. Gradients are clipped at norm 1. If the score falls, "
            "lower it: the map may change faster than the encoder and the head can follow."
        ),
        source="BERT-flow's code",
        sweep=(1e-5, 1e-4, 1e-3),
        suggested=True,
        gt=0,
        le=0.1,
    )


@dataclass(frozen=True)
class Step:
    """One step of the map.

    Attributes:
        width: dimensions it changes (the first ones; the others have been split off).
        flipped: the second half conditions the first instead of the reverse. Steps alternate.
        split: how many dimensions, counted from the end, are split off after this step (0: none).
    """

    width: int
    flipped: bool
    split: int

    @property
    def first(self) -> int:
        """Size of the first half, which includes the odd dimension."""
        return self.width - self.width // 2


def plan(width: int, levels: int, depth: int) -> list[Step]:
    """The steps of a map of `width` dimensions; `InputError` if that many levels leave fewer than two dimensions."""
    from isoviz.errors import InputError

    steps: list[Step] = []
    remaining = width
    for level in range(levels):
        if remaining < 2:
            raise InputError(
                f"levels: {width} dimensions allow at most {level} levels (got {levels})",
                field="params.levels",
            )
        split = remaining // 2 if level < levels - 1 else 0
        for number in range(depth):
            steps.append(Step(remaining, bool(number % 2), split if number == depth - 1 else 0))
        remaining -= split
    return steps


def make_map(steps: list[Step], hidden: int) -> nn.Module:
    """The map's parameters, one submodule per step; the map starts as the identity.

    Per step of width w: `shift` and `log_scale` (w,) of the actnorm; `lu` (w, w), whose strict triangles are those of L
    and U and whose diagonal is the logarithm of U's; `weight1…3`, `bias1…3` of the coupling's network. A separate generator
    with a fixed seed draws the couplings' hidden weights, so they are the same in every run.
    """
    import torch

    generator = torch.Generator().manual_seed(0)
    root = torch.nn.Module()
    for number, step in enumerate(steps):
        inputs, outputs = (step.first, step.width - step.first)[:: -1 if step.flipped else 1]
        shapes = {"shift": (step.width,), "log_scale": (step.width,), "lu": (step.width, step.width)}
        shapes |= {"weight1": (hidden, inputs), "bias1": (hidden,), "weight2": (hidden, hidden), "bias2": (hidden,)}
        shapes |= {"weight3": (outputs, hidden), "bias3": (outputs,)}
        module = torch.nn.Module()
        for name, shape in shapes.items():
            value = torch.zeros(shape)
            if name in ("weight1", "weight2"):
                # keeps the scale through ReLU
                value = torch.randn(shape, generator=generator) * math.sqrt(2 / shape[1])
            module.register_parameter(name, torch.nn.Parameter(value))
        root.add_module(f"step{number}", module)
    return root


def gaussianise(
    parameters: Mapping[str, Tensor], steps: list[Step], points: Tensor, start: bool = False
) -> tuple[Tensor, Tensor]:
    """z = f⁻¹(h) and log|det ∂z/∂h|.

    Args:
        parameters: the parameters by name, as in `make_map`.
        points: (B, h) in the parameters' precision.
        start: first initialise each actnorm, in place, so that its output on this batch has mean 0 and deviation 1.

    Returns:
        (B, h) and a scalar; with additive couplings the determinant is the same at every point.
    """
    import torch

    log_det = points.new_zeros(())
    split_off: list[Tensor] = []
    for number, step in enumerate(steps):
        step_parameters = _of_step(parameters, number)
        if start:  # after the first actnorm every dimension has deviation 1 or 0
            _start_actnorm(step_parameters, points, spread(points) if number == 0 else points.new_ones(()))
        points = (points + step_parameters["shift"]) * step_parameters["log_scale"].exp()
        lower, upper = _triangles(step_parameters["lu"])
        points = points @ upper.T
        points = points + points @ lower.T  # L has a unit diagonal
        log_det = log_det + step_parameters["log_scale"].sum() + step_parameters["lu"].diagonal().sum()
        points = _couple(step_parameters, step, points)
        if step.split:
            split_off.append(points[:, step.width - step.split :])
            points = points[:, : step.width - step.split]
    return torch.cat([points, *reversed(split_off)], dim=1), log_det


def bits_per_dimension(gaussian: Tensor, log_det: Tensor) -> Tensor:
    """−[log N(z; 0, I) + log|det|]/(d ln 2), the mean over rows of z (B, d): a scalar, in bits."""
    d = gaussian.shape[1]
    log_normal = -0.5 * (gaussian.square().sum(dim=1) + d * math.log(2 * math.pi))
    return -(log_normal.mean() + log_det) / (d * math.log(2))


def spread(points: Tensor) -> Tensor:
    """Root-mean-square deviation over the dimensions of (B, h): a scalar."""
    return points.var(dim=0, correction=0).mean().sqrt()


def _of_step(parameters: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    prefix = f"step{number}."
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def _triangles(lu: Tensor) -> tuple[Tensor, Tensor]:
    """The strict lower triangle of L, and U; their product, which would cost w³, is never computed."""
    return lu.tril(-1), lu.triu(1) + lu.diagonal().exp().diag()


def _couple(parameters: Mapping[str, Tensor], step: Step, points: Tensor) -> Tensor:
    """Shift one half by a function of the other."""
    import torch
    from torch.nn.functional import linear, relu

    first, second = points[:, : step.first], points[:, step.first :]
    hidden = relu(linear(second if step.flipped else first, parameters["weight1"], parameters["bias1"]))
    hidden = relu(linear(hidden, parameters["weight2"], parameters["bias2"]))
    shift = linear(hidden, parameters["weight3"], parameters["bias3"])
    return torch.cat([first + shift, second] if step.flipped else [first, second + shift], dim=1)


def _start_actnorm(parameters: Mapping[str, Tensor], points: Tensor, typical_std: Tensor) -> None:
    import torch

    std, mean = torch.std_mean(points, dim=0, correction=0)
    parameters["shift"].copy_(-mean)
    # scale a constant dimension like the others: dividing by a floor would stretch it again in each step
    parameters["log_scale"].copy_(-torch.where(std > NOISE * typical_std, std, typical_std).log())


class Flow(Method):
    """The classifier reads z = f⁻¹(h), where f is a Glow-style flow trained along with the task."""

    slug = "flow"
    title = "Flow"
    summary = "Passes the classifier's input through an invertible map trained to make its distribution Gaussian."
    equation = (
        r"z = f^{-1}(h),\quad L_{\mathrm{flow}} = -\frac{1}{d \ln 2}"
        r"\left[\log \mathcal N(z; 0, I) + \log\left|\det \frac{\partial f^{-1}}{\partial h}\right|\right]"
    )
    paper = Paper("Li et al. 2020", entries()["li2020sentence"])
    Params = FlowParams
    params: FlowParams
    effects = {"isoscore": "up"}
    traps = (
        "The isotropy calibration paper gives no settings for the flow and does not say which vector the classifier reads. "
        "Here it reads the mapped pooled vector, and the map is trained along with the task. Settings are those of BERT-flow.",
        "The two losses train different parameters: the likelihood trains only the map; the task loss trains the encoder and "
        "the head through the map.",
        "Before the first training batch the map is the identity, so epoch 0 equals the baseline's. The mean and deviation of "
        "that batch then initialise the map; with few rows they are rough estimates.",
        "Dimensions that vary less than a thousandth of the typical amount are blurred with noise instead of being stretched "
        "to variance 1, because their likelihood would be unbounded. Compare bits per dimension only between runs on the same "
        "model.",
        "On span and text tasks the map is fitted to token vectors as if they were independent. A pretrained output layer was "
        "not trained on z, so a pretrained network in effect starts over when the map starts.",
        "In BERT-flow the encoder is frozen; here it changes, and the map follows at its own learning rate. In a run of a few "
        "hundred steps BERT-flow's learning rate is slow, and z may be less isotropic than the pooled vector.",
    )

    def attach(self, model: HookedModel) -> None:
        """Create the map for h = `model.head_width` dimensions, in float32. `spread` is the first batch's root-mean-square
        deviation, 0 before that batch; `batches` seeds the noise.
        """
        import torch

        self.steps = plan(model.head_width, self.params.levels, self.params.depth)
        self.state = make_map(self.steps, self.params.hidden)
        self.state.register_buffer("spread", torch.zeros(()))
        self.state.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The map's optimiser settings, from BERT-flow."""
        assert self.state is not None
        return [
            {
                "params": list(self.state.parameters()),
                "lr": self.params.learning_rate,
                "eps": 1e-6,
                "weight_decay": 0.01,
                "clip": 1.0,
            }
        ]

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """z (B, h): the task's gradient passes through the map into the encoder and does not change the map. The input
        unchanged before the first training batch whose rows differ.
        """
        import torch

        pooled = reps.pooled
        fixed = {name: value.detach() for name, value in self._parameters().items()}
        with torch.autocast(pooled.device.type, enabled=False):
            if training and not bool(self.buffer("spread")):
                self._start(fixed, self._points(pooled.detach()))
            if not bool(self.buffer("spread")):
                return pooled
            gaussian, _ = gaussianise(fixed, self.steps, self._points(pooled))
        return gaussian.to(pooled.dtype)

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{"flow": weight × bits per dimension} of the pooled vectors with noise added, detached from the encoder."""
        import torch

        from isoviz.metrics.collectives import own_rows, own_share

        with torch.autocast(reps.pooled.device.type, enabled=False):
            points = self._points(reps.pooled.detach())
            # a separate generator, seeded by a saved number: dropout's generator is unaffected, and a resumed run continues
            # identically
            generator = torch.Generator().manual_seed(int(self.buffer("batches")))
            width, device = points.shape[1], points.device
            noise = own_rows(lambda rows: torch.randn(rows, width, generator=generator), len(points), device).to(points)
            self.buffer("batches").add_(1)
            points = points + NOISE * self.buffer("spread") * noise
            gaussian, log_det = gaussianise(self._parameters(), self.steps, points)
            share = own_share(len(points), device)
            return {"flow": share * self.params.weight * bits_per_dimension(gaussian, log_det)}

    def _start(self, parameters: Mapping[str, Tensor], points: Tensor) -> None:
        """Initialise the actnorms from the data, unless the rows are equal up to rounding."""
        import torch

        from isoviz.metrics.collectives import gathered

        with torch.no_grad():
            points = gathered(points)  # several processes must start from the same numbers
            if bool(spread(points) > 1e-6 * points.square().mean().sqrt()):
                gaussianise(parameters, self.steps, points, start=True)
                self.buffer("spread").copy_(spread(points))

    def _parameters(self) -> dict[str, Tensor]:
        assert self.state is not None
        return dict(self.state.named_parameters())

    def _points(self, pooled: Tensor) -> Tensor:
        return pooled.to(next(iter(self._parameters().values())).dtype)
