"""Every method of the folder is found, described and validated."""

from __future__ import annotations

import pytest

from isoviz import methods
from isoviz.errors import InputError


@pytest.mark.parametrize("slug", list(methods.catalogue()))
def test_no_parameters_are_the_defaults(slug):
    assert methods.check_params(slug, {}) == methods.get(slug).Params().model_dump()


@pytest.mark.parametrize(
    ("slug", "params", "message"),
    [
        ("isbn", {}, "did you mean 'isobn'"),
        ("baseline", {"lam": 1}, "has no parameters"),
        ("istar", {"lamda": 1}, "did you mean 'lam'"),
        ("istar", {"zeta": 1.5}, "less than or equal to 1"),
        ("istar", {"lam": "strong"}, "valid number"),
        ("istar", {"lam": float("nan")}, "lam"),
        ("isobn", {"form": "other"}, "'paper' or 'code'"),
        ("istar", {"layer": 1.5}, "integer"),
    ],
)
def test_invalid_values(slug, params, message):
    with pytest.raises(InputError, match=message) as caught:
        methods.check_params(slug, params)
    assert caught.value.field
