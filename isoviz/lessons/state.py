"""The playground's state: the name, default and allowed values of each control.

The browser has the same table in `dashboard/components/playground/state.js`; a test compares the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class TransformStep(BaseModel):
    """One transform of the chain, with the playground's parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    slug: Literal["centring", "all_but_the_top", "truncation", "zca", "isobn", "batch_norm", "unit_norm"]
    remove: int | None = Field(None, ge=0, le=1024)
    keep: int | None = Field(None, ge=2, le=1024)
    strength: float | None = Field(None, ge=0, le=1)
    eps: float | None = Field(None, ge=0, le=1e6)
    beta: float | None = Field(None, ge=0, le=4)

    @model_validator(mode="after")
    def _its_own(self) -> TransformStep:
        for name in self.parameters:
            if name not in PARAMETERS[self.slug]:
                allowed = ", ".join(PARAMETERS[self.slug]) or "none"
                raise ValueError(f"'{self.slug}' has no parameter '{name}' (allowed: {allowed})")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are set."""
        return {name: value for name, value in self.model_dump(exclude={"slug"}).items() if value is not None}


PARAMETERS: dict[str, dict[str, float]] = {
    "centring": {},
    "all_but_the_top": {"remove": 1},
    "truncation": {"keep": 8},
    "zca": {"strength": 0.5, "eps": 0.0},
    "isobn": {"beta": 0.5},
    "batch_norm": {"eps": 1e-5},
    "unit_norm": {},
}
"""The parameters of each transform with the playground's initial values."""


class State(BaseModel):
    """A cloud and the transforms applied to it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)
    d: int = Field(64, ge=2, le=1024, description="dimensions")
    n: int = Field(1000, ge=10, le=5000, description="points")
    seed: int = Field(1, ge=0, le=2**32 - 1, description="of the random cloud")
    spectrum: Literal["flat", "power", "exponential", "step"] = "flat"
    decay: float = Field(1.0, ge=0, le=10, description="how fast the variances fall")
    rank: int = Field(16, ge=1, le=1024, description="step spectrum: dimensions with full variance")
    floor: float = Field(0, ge=0, le=1, description="step spectrum: variance of the others, as a share")
    shift: float = Field(0, ge=-20, le=20, description="added to every coordinate")
    rogue: int = Field(1, ge=1, le=1024, description="index of the rogue dimension")
    rogueScale: float = Field(1, ge=0, le=100, description="its width relative to the others")  # noqa: N815 (the browser's name)
    block: int = Field(1, ge=1, le=64, description="neighbouring dimensions in a correlated block")
    rho: float = Field(0.8, ge=0, le=0.99, description="their correlation")
    rotation: float = Field(0, ge=0, le=1)
    tails: int = Field(0, ge=0, le=100, description="degrees of freedom of Student's t; 0 is Gaussian")
    clusters: int = Field(1, ge=1, le=10)
    separation: float = Field(4, ge=0, le=50, description="distance between any two cluster centres")
    duplicates: float = Field(0, ge=0, le=0.95, description="share of points that are copies")
    scale: float = Field(1, ge=0.001, le=1000, description="multiplies everything")
    zeta: float = Field(0.2, ge=0, le=1, description="weight of the true covariance in IsoScore*")
    transforms: Annotated[tuple[TransformStep, ...], Field(max_length=6, strict=False)] = ()
    view: Literal["dimensions", "principal", "plane"] = "dimensions"
    hidden: Annotated[tuple[str, ...], Field(strict=False)] = ()
