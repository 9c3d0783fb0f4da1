"""`isoviz app` and `isoviz links`: the links that are printed and opened are those that work."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.server import announcing
from dashboard.shared.visitor import Open
from isoviz.__main__ import main
from isoviz.home import home
from isoviz.operations.access import allowed_hosts, links
from isoviz.operations.access.allowed_hosts import AllowedHosts
from isoviz.operations.access.visitors import Role
from tests.ports import answers, free_port
from tests.runs.observing import until

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def app(*options: str, **environment: str) -> Iterator[tuple[int, list[str]]]:
    """A dashboard started as a user starts it: its port and the lines it printed until it was ready."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "isoviz", "app", "--port", str(port), *options],
        cwd=ROOT,
        env={**os.environ, "ISOVIZ_RUNNER": "off", "ISOVIZ_SPARES": "off", "PYTHONUNBUFFERED": "1", **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.strip())
            if re.match("(Links for others|Runners can launch)", line.strip()):
                break
        until(lambda: answers(f"http://127.0.0.1:{port}"))
        yield port, lines
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


def status(url: str) -> int:
    """Of the answer, without following it to another address."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        with urllib.request.build_opener(Stay).open(url, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_printed_link_works_and_the_browser_gets_another(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with app(BROWSER=str(browser)) as (port, lines):
        assert lines[0] == f"IsoViz is served at http://127.0.0.1:{port}"
        link = lines[1].split()[-1]
        assert link == links.read(home()).address(f"http://127.0.0.1:{port}", Role.OPERATOR)
        assert status(f"http://127.0.0.1:{port}/") == 401
        assert status(link) == status(link) == 303
        until(opened.exists)
        once = opened.read_text().strip()
        assert once.startswith(f"http://127.0.0.1:{port}/?token=") and once != link
        assert (status(once), status(once)) == (303, 401)


def test_for_others_it_prints_the_runner_s_and_the_viewer_s_link() -> None:
    with app("--headless", "--host", "0.0.0.0") as (port, lines):
        stored = links.read(home())
        text = "\n".join(lines)
        assert stored.secrets[Role.RUNNER] in text and stored.secrets[Role.VIEWER] in text
        assert stored.secrets[Role.OPERATOR] not in text
        codes = {role: status(stored.address(f"http://127.0.0.1:{port}", role)) for role in Role}
        assert codes == {Role.VIEWER: 303, Role.RUNNER: 303, Role.OPERATOR: 401}


@pytest.mark.parametrize(
    ("variable", "sign_in", "words"),
    [
        (allowed_hosts.NO_TOKEN, Open.UNGUARDED, "no token required"),
        (allowed_hosts.READ_ONLY, Open.READ_ONLY, "Read-only"),
    ],
)
def test_an_open_server_says_so(
    variable: str, sign_in: Open, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "1")
    here = AllowedHosts("127.0.0.1")
    assert announcing._sign_in(here) is sign_in
    announcing.announce(here, sign_in, "")
    printed = capsys.readouterr().out
    assert words in printed and "token=" not in printed


def test_links_are_shown_and_renewed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def printed(*arguments: str) -> dict[str, str]:
        assert main(["links", *arguments, "--store", str(tmp_path), "--json"]) == 0
        shown: dict[str, str] = json.loads(capsys.readouterr().out)["links"]
        return shown

    first = printed("show")
    assert first == printed("show") and list(first) == ["viewer", "runner", "operator"]
    renewed = printed("renew", "viewer")
    assert {name for name in first if first[name] != renewed[name]} == {"viewer"}
    everything = printed("renew")
    assert not set(everything.values()) & set(renewed.values())
    public = printed("show", "--url", "https://isoviz.example.org/lab/")
    assert public["runner"].startswith("https://isoviz.example.org/lab/?token=")
    assert main(["links", "show", "--store", str(tmp_path)]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        [*item] for item in everything.items()
    ]
