"""Which names a server answers to, and whose pages may talk to it."""

from __future__ import annotations

import pytest

from isoviz.errors import InputError
from isoviz.operations.access import allowed_hosts
from isoviz.operations.access.allowed_hosts import AllowedHosts

LOOPBACK = AllowedHosts("127.0.0.1")
SHARED = AllowedHosts(None)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8501", "localhost:8501", "LOCALHOST", "localhost.", "[::1]:8501", "127.1.2.3"]
)
def test_this_machine_s_own_names(host: str) -> None:
    assert LOOPBACK.allows_host(host) and SHARED.allows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8501",
        "evil.example@127.0.0.1",
        "127.0.0.1:8501:9",
        "127.0.0.1 evil.example",
        "[::1",
        "é.example",
    ],
)
def test_a_name_that_may_be_rebound(host: str) -> None:
    assert not LOOPBACK.allows_host(host) and not SHARED.allows_host(host)


def test_addresses_in_digits_cannot_be_rebound() -> None:
    assert SHARED.allows_host("192.0.2.7:8501") and SHARED.allows_host("[2001:db8::1]:8501")
    assert not LOOPBACK.allows_host("192.0.2.7:8501")  # nothing arrives there under that address


def test_names_of_the_operator() -> None:
    rules = AllowedHosts.from_environment(
        "127.0.0.1",
        {allowed_hosts.URL: "https://isoviz.example.org/lab/", allowed_hosts.HOSTS: "other.example, Third.Example"},
    )
    assert (rules.url, rules.path) == ("https://isoviz.example.org/lab", "/lab")
    assert (
        AllowedHosts.from_environment(None, {allowed_hosts.URL: "http://x.org/user/a%40b.org/lab"}).path
        == "/user/a@b.org/lab"
    )
    assert all(rules.allows_host(name) for name in ("isoviz.example.org", "other.example:80", "third.example"))
    assert not rules.allows_host("x.other.example")
    assert rules.allows_origin("https://isoviz.example.org", "127.0.0.1:8501")  # a proxy that does not pass on the Host
    assert not rules.allows_origin("http://isoviz.example.org", "127.0.0.1:8501")
    assert not rules.allows_origin("https://other.example", "127.0.0.1:8501")


def test_its_own_pages_and_no_others() -> None:
    host = "127.0.0.1:8501"
    assert LOOPBACK.allows_origin("http://127.0.0.1:8501", host)
    for origin in (
        "http://127.0.0.1:9999",
        "http://localhost:8501",
        "http://127.0.0.1",
        "http://evil.example",
        "http://127.0.0.1:8501.evil.example",
        "http://127.0.0.1:8501@evil.example",
        "null",
        "",
    ):
        assert not LOOPBACK.allows_origin(origin, host), origin
    assert LOOPBACK.allows_origin("http://localhost", "localhost:80")
    assert LOOPBACK.allows_origin("https://[::1]", "[::1]")
    assert AllowedHosts(None, origins=frozenset({"https://lms.example"})).allows_origin("https://lms.example:443", host)


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        (allowed_hosts.URL, "isoviz.example.org", "url"),
        (allowed_hosts.URL, "https://isoviz.example.org/a/../b", "url"),
        (allowed_hosts.HOSTS, "*.example.org", "allow-host"),
        (allowed_hosts.HOSTS, "https://example.org", "allow-host"),
        (allowed_hosts.ORIGINS, "*", "allow-origin"),
        (allowed_hosts.ORIGINS, "https://example.org/path", "allow-origin"),
        (allowed_hosts.FRAMES, "https://a.example; script-src *", "allow-frame"),
        (allowed_hosts.FRAMES, "https://a.example\nx: y", "allow-frame"),
    ],
)
def test_an_invalid_address_is_refused(name: str, value: str, option: str) -> None:
    with pytest.raises(InputError, match=f"^{option}: ") as refused:
        AllowedHosts.from_environment(None, {name: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("address", [None, "", "0.0.0.0", "::", "192.0.2.7", "myhost.example"])
def test_an_unguarded_server_listens_to_this_machine_only(address: str | None) -> None:
    allowed_hosts.refuse_unguarded(address, {})
    allowed_hosts.refuse_unguarded(address, {allowed_hosts.NO_TOKEN: "1", allowed_hosts.READ_ONLY: "1"})
    allowed_hosts.refuse_unguarded("127.0.0.1", {allowed_hosts.NO_TOKEN: "1"})
    allowed_hosts.refuse_unguarded("::1", {allowed_hosts.NO_TOKEN: "1"})
    with pytest.raises(InputError, match="anyone who reaches"):
        allowed_hosts.refuse_unguarded(address, {allowed_hosts.NO_TOKEN: "1"})


@pytest.mark.parametrize("variable", [allowed_hosts.URL, allowed_hosts.HOSTS, allowed_hosts.ORIGINS])
def test_an_unguarded_server_has_no_public_name(variable: str) -> None:
    name = "isoviz.example.org" if variable == allowed_hosts.HOSTS else "https://isoviz.example.org"
    local = "localhost" if variable == allowed_hosts.HOSTS else "http://localhost:8501"
    allowed_hosts.refuse_unguarded("127.0.0.1", {variable: name})
    allowed_hosts.refuse_unguarded(
        "127.0.0.1", {variable: name, allowed_hosts.NO_TOKEN: "1", allowed_hosts.READ_ONLY: "1"}
    )
    allowed_hosts.refuse_unguarded("127.0.0.1", {variable: local, allowed_hosts.NO_TOKEN: "1"})
    with pytest.raises(InputError, match=r"isoviz\.example\.org") as refusal:
        allowed_hosts.refuse_unguarded("127.0.0.1", {variable: name, allowed_hosts.NO_TOKEN: "1"})
    assert refusal.value.field == "host"


def test_a_switch_that_is_mistyped_is_refused() -> None:
    with pytest.raises(InputError, match="ISOVIZ_READ_ONLY: expected 1 or 0"):
        allowed_hosts.switched_on(allowed_hosts.READ_ONLY, {allowed_hosts.READ_ONLY: "ture"})
    assert not allowed_hosts.switched_on(allowed_hosts.READ_ONLY, {})
