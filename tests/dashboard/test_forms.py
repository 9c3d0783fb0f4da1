"""Parsing form input: lists, seeds, bounds, and the errors."""

from __future__ import annotations

import pytest

from dashboard.shared import forms
from isoviz import methods
from isoviz.config import RunConfig
from isoviz.errors import InputError


@pytest.mark.parametrize(
    ("text", "values"),
    [("-1, 0, 1", ["-1", "0", "1"]), ("−1;0.5", ["-1", "0.5"]), (" 1  2\n3 ", ["1", "2", "3"]), ("", []), (None, [])],
)
def test_split_values(text: str | None, values: list[str]) -> None:
    assert forms.split_values(text) == values


@pytest.mark.parametrize(
    ("text", "seeds"), [("0 1 2", [0, 1, 2]), ("3", [3]), ("0-2, 7", [0, 1, 2, 7]), ("1..3", [1, 2, 3]), ("4 4", [4])]
)
def test_seeds(text: str, seeds: list[int]) -> None:
    assert forms.parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "one", "-1", "1.5", "5-2", "0-9999", "99999999999", "3000000000"])
def test_bad_seeds_say_what_is_allowed(text: str) -> None:
    with pytest.raises(InputError) as caught:
        forms.parse_seeds(text)
    assert caught.value.field == "seed"
    assert "allowed" in str(caught.value) or "less than or equal" in str(caught.value)


def test_param_values_are_checked_one_by_one() -> None:
    assert forms.check_param("istar", "lam", ["-1", "1", "1.0"]) == forms.Answer((-1.0, 1.0))
    assert forms.check_param("istar", "lam", []).error == "Enter at least one value."
    wrong = forms.check_param("istar", "lam", ["1", "101"])
    assert wrong.values == (1.0,)
    assert wrong.error is not None and "101" in wrong.error and "at least -100, at most 100" in wrong.error
    assert "abc" in (forms.check_param("istar", "lam", ["abc"]).error or "")
    assert "nan" in (forms.check_param("istar", "zeta", ["nan"]).error or "")


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("epochs", 3, 3),
        ("learning_rate", "", None),
        ("learning_rate", "6e-4", 6e-4),
        ("max_train", None, None),
        ("early_stopping", " ", None),
        ("early_stopping", "accuracy:2", "accuracy:2"),
        ("precision", "bf16", "bf16"),
    ],
)
def test_settings(name: str, raw: object, value: object) -> None:
    assert forms.check_setting(name, raw) == forms.Answer((value,))


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("epochs", 0, "at least 1"),
        ("learning_rate", "0", "above 0"),
        ("learning_rate", "fast", "fast"),
        ("weight_decay", "", "Give a value."),
        ("early_stopping", "accuracy", "pattern"),
    ],
)
def test_bad_settings_say_what_is_allowed(name: str, raw: object, message: str) -> None:
    answer = forms.check_setting(name, raw)
    assert answer.values == () and answer.error is not None and message in answer.error


def test_every_setting_accepts_its_own_default() -> None:
    for name in forms.SETTINGS:
        (value,) = forms.check_setting(name, forms.setting_default(name)).values
        assert value == (None if name == "learning_rate" else RunConfig.model_fields[name].default)


def test_every_parameter_accepts_its_own_default_as_text() -> None:
    for slug, method in methods.catalogue().items():
        for name, field in method.Params.model_fields.items():
            raw = [field.default] if forms.choices_of(field) else forms.split_values(forms.number_text(field.default))
            assert forms.check_param(slug, name, raw) == forms.Answer((field.default,))
