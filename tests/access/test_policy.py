"""What the operator sets, from environment variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isoviz.errors import InputError
from isoviz.operations.access import policy
from isoviz.operations.access.allowed_hosts import AllowedHosts

HERE, OPEN, BEHIND_A_PROXY = (
    AllowedHosts("127.0.0.1"),
    AllowedHosts("0.0.0.0"),
    AllowedHosts("127.0.0.1", "https://isoviz.example.org"),
)


def test_defaults() -> None:
    here = policy.read(HERE, {})
    assert not here.read_only and here.roots == (Path.cwd(), Path.home())
    assert policy.read(OPEN, {}).roots == policy.read(BEHIND_A_PROXY, {}).roots == ()
    assert (here.quotas.queued, here.quotas.launch, here.quotas.upload_mb, here.quotas.jobs) == (50, 50, 500, 4)
    assert here.quotas.threads is None


def test_variables(tmp_path: Path) -> None:
    environment = {
        "ISOVIZ_READ_ONLY": "1",
        "ISOVIZ_ROOTS": os.pathsep.join((str(tmp_path), "~/data", "")),
        "ISOVIZ_STORE_HOSTS": "DB.example.org, [::1]:6333,",
        "ISOVIZ_QUOTA_QUEUED": "7",
        "ISOVIZ_QUOTA_THREADS": "2",
    }
    for variables in (HERE, OPEN):
        read = policy.read(variables, environment)
        assert read.read_only and read.roots == (tmp_path, Path.home() / "data")
        assert read.store_hosts == (("db.example.org", None), ("::1", 6333))
        assert (read.quotas.queued, read.quotas.threads, read.quotas.launch) == (7, 2, 50)
    assert policy.read(HERE, {"ISOVIZ_ROOTS": ""}).roots == policy.read(HERE, {}).store_hosts == ()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("ISOVIZ_READ_ONLY", "maybe", "expected 1 or 0"),
        ("ISOVIZ_ROOTS", "data", "not an absolute path"),
        ("ISOVIZ_STORE_HOSTS", "*.example.org", "expected hosts such as"),
        ("ISOVIZ_QUOTA_JOBS", "-1", "expected a whole number"),
        ("ISOVIZ_QUOTA_LAUNCH", "9" * 400, "expected a whole number"),
    ],
)
def test_a_variable_that_cannot_be_understood_is_named(variable: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        policy.read(HERE, {variable: value})
    assert str(caught.value).startswith(variable) and len(str(caught.value)) < 300


def test_the_documentation_names_every_quota_and_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    for name, default, what in policy._QUOTAS.values():
        assert f"| `{name}` | {'' if default is None else default} | {what} |" in page
