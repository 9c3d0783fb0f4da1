"""Roles of people who log in."""

from __future__ import annotations

import pytest

from isoviz.errors import InputError
from isoviz.operations.access.visitors import People, Role, Visitor

LISTS = {
    "ISOVIZ_OPERATORS": "Ada@uni.example",
    "ISOVIZ_RUNNERS": "@uni.example, guest@other.example",
    "ISOVIZ_VIEWERS": "@school.example",
}


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"email": "ada@UNI.example"}, Role.OPERATOR),
        ({"email": "bob@uni.example", "email_verified": True}, Role.RUNNER),
        ({"email": "guest@other.example"}, Role.RUNNER),
        ({"email": "pupil@school.example"}, Role.VIEWER),
        ({"email": "else@other.example"}, None),
        ({"email": "bob@uni.example.evil.example"}, None),
        ({"email": "ada@uni.example", "email_verified": False}, None),
        ({"email": "ada@uni.example", "email_verified": "false"}, None),
        ({"email": "ada@uni.example", "email_verified": "true"}, Role.OPERATOR),
        ({"email": ["ada@uni.example"]}, None),
        ({"email": "ada@uni.example\n"}, None),
        ({"email": "else@other.example\nada@uni.example"}, None),
        ({"email": "a\u200bda@uni.example"}, None),
        ({}, None),
    ],
)
def test_the_highest_role_that_names_someone(claims: dict[str, object], role: Role | None) -> None:
    visitor = People.from_environment(LISTS).visitor(claims)
    assert (visitor and visitor.role) == role
    if visitor is not None:
        assert visitor.id == str(claims["email"]).lower()


def test_a_foreign_letter_whose_small_form_is_ours_is_another_address() -> None:
    people = People.from_environment({"ISOVIZ_OPERATORS": "kim@uni.example"})
    assert people.visitor({"email": "Kim@uni.example"}) and people.visitor({"email": "\u212aim@uni.example"}) is None


def test_everybody_whom_the_provider_lets_in() -> None:
    people = People.from_environment({"ISOVIZ_VIEWERS": "*", "ISOVIZ_RUNNERS": "a@b.example"})
    assert people.visitor({"email": "x@y.example"}) == Visitor("x@y.example", Role.VIEWER)
    assert people.visitor({"email": "a@b.example"}) == Visitor("a@b.example", Role.RUNNER)


@pytest.mark.parametrize(
    "lists", [{}, {"ISOVIZ_RUNNERS": " , "}, {"ISOVIZ_RUNNERS": "uni.example"}, {"ISOVIZ_VIEWERS": "@"}]
)
def test_lists_that_admit_no_one_are_an_error(lists: dict[str, str]) -> None:
    with pytest.raises(InputError):
        People.from_environment(lists)
