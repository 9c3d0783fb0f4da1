"""Links: one secret per role, private to the account, renewed one by one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from isoviz.errors import StoreError
from isoviz.operations.access import links
from isoviz.operations.access.visitors import Role


def test_each_role_has_a_separate_lasting_secret(tmp_path: Path) -> None:
    first, again = links.read(tmp_path), links.read(tmp_path)
    assert first == again and len(set(first.secrets.values())) == 3
    assert {first.role_of(secret) for secret in first.secrets.values()} == set(Role)
    assert first.role_of("") is None and first.role_of("é\udc80") is None


def test_the_file_is_the_account_s_own(tmp_path: Path) -> None:
    links.read(tmp_path)
    assert stat.S_IMODE(links.path_of(tmp_path).stat().st_mode) == 0o600
    links.renew(tmp_path)
    assert stat.S_IMODE(links.path_of(tmp_path).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["links.json"]


def test_one_role_is_renewed_and_the_others_stay(tmp_path: Path) -> None:
    before, after = links.read(tmp_path), links.renew(tmp_path, [Role.RUNNER])
    assert after.role_of(before.secrets[Role.RUNNER]) is None
    assert after.secrets[Role.VIEWER] == before.secrets[Role.VIEWER]
    assert after.address("http://127.0.0.1:8501/", Role.VIEWER).startswith("http://127.0.0.1:8501/?token=")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"viewer": "", "runner": "", "operator": ""}', "\xff"])
def test_a_damaged_file_admits_no_one(tmp_path: Path, content: str) -> None:
    links.path_of(tmp_path).write_bytes(content.encode("latin-1"))
    with pytest.raises(StoreError, match="does not contain links"):
        links.read(tmp_path)
