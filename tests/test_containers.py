"""The images, as far as they go without a container runtime: each instruction is carried out in a clean folder, with the image's files,
variables and user; what it starts serves, trains and stops."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
import yaml
from dockerfile_parse import DockerfileParser
from pathspec import GitIgnoreSpec

from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs.observing import posix, until
from tests.runs.postgres_server import Server, installed
from tests.wheel import ROOT, built

pytestmark = [posix, pytest.mark.slow]
USER = 1000
SHIMS = {
    "python": 'exec {python} "$@"',
    "isoviz": 'exec {python} -m isoviz "$@"',
    "useradd": 'echo "$@" > {root}/useradd',
    "install": 'for word; do shift; case $word in --owner=*) ;; *) set -- "$@" "$word";; esac; done; exec /usr/bin/install "$@"',
    # the pins are those of this environment, so that nothing is fetched and a wrong one is still refused
    "pip": 'case "$*" in *.whl*) exec {python} -m pip "$@" --quiet --no-index --target {root}/site;; '
    '*) exec {python} -m pip "$@" --quiet --no-index --no-build-isolation --dry-run;; esac',
}
"""Programs that would change this machine."""


@dataclass
class Image:
    """What the instructions of a Dockerfile made below `root`, with `port` instead of the one that it exposes."""

    root: Path
    port: int = field(default_factory=free_port)
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = Path("/")
    instructions: dict[str, str] = field(default_factory=dict)

    def argv(self, name: str) -> list[str]:
        """The words of an instruction in exec form."""
        words: list[str] = json.loads(self.instructions.get(name, "[]"))
        return words

    def start(self, command: list[str], **variables: str) -> subprocess.Popen[str]:
        """A command in the image, as its user."""
        inherited = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "LANG") if name in os.environ}
        path = os.pathsep.join([str(self.root / "bin"), os.environ["PATH"]])
        environment = inherited | {"PATH": path, "PYTHONPATH": f"{self.root}/site"} | self.environment | variables
        if os.geteuid() == 0:  # the user may read Python, wherever it is, and write what the image lets it
            able = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
            command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *able, *command]
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, command: list[str]) -> int:
        process = self.start(command)
        output = process.communicate(timeout=120)[0]
        return process.returncode or (0 if "Traceback" not in output else 1)

    def place(self, text: str) -> str:
        """A value with the image's absolute paths below its root, and its port."""
        text = re.sub(r"(?<![\w.:/~])/(data|opt|home)\b", rf"{self.root}/\1", text)
        return re.sub(r"\b(8501|7860)\b", str(self.port), text)

    def healthy(self) -> bool:
        _, _, command = self.instructions["HEALTHCHECK"].partition(" CMD ")
        return self.run(json.loads(command)) == 0


def sent(context: Path) -> set[str]:
    """The files of a build's context that .dockerignore leaves in; its patterns are relative to the root."""
    ignored = context / ".dockerignore"
    lines = ignored.read_text().splitlines() if ignored.exists() else []
    anchored = [re.sub(r"^(!?)(?=[^#*!]|\*$)", r"\1/", line) for line in lines]
    spec = GitIgnoreSpec.from_lines(anchored)
    tops = [path for path in context.iterdir() if path.name not in (".git", ".venv")]
    files = [file for top in tops for file in ([top] if top.is_file() else top.rglob("*")) if file.is_file()]
    return {name for file in files if not spec.match_file(name := file.relative_to(context).as_posix())}


def build(context: Path, image: Image) -> None:
    """Carry out the Dockerfile in this folder."""
    root = image.root
    (root / "bin").mkdir()
    for name, script in SHIMS.items():
        (root / "bin" / name).write_text(f"#!/bin/sh\n{script.format(python=sys.executable, root=root)}\n")
        (root / "bin" / name).chmod(0o755)
    files = sent(context)
    for step in DockerfileParser(path=str(context)).structure:
        name, value = step["instruction"], image.place(step["value"])
        if name in ("ARG", "ENV"):
            image.environment |= dict(word.split("=", 1) for word in shlex.split(value))
        elif name == "WORKDIR":
            image.folder = Path(value)
            image.folder.mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            *sources, target = shlex.split(value)
            for source in sources:
                pattern = re.compile(".*" if source == "." else re.escape(source).replace(r"\*", "[^/]*"))
                copied = {file for file in files if pattern.fullmatch(file)}
                assert copied, f"COPY {source}: not in the context"
                for file in copied:
                    (image.folder / target / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(context / file, image.folder / target / file)
        elif name == "RUN":
            path = os.pathsep.join([str(root / "bin"), os.environ["PATH"]])
            environment = {**os.environ, **image.environment, "PATH": path}
            made = subprocess.run(
                ["sh", "-c", value], cwd=image.folder, env=environment, capture_output=True, text=True
            )
            assert made.returncode == 0, f"RUN {value}\n{made.stdout}{made.stderr}"
        image.instructions[name] = value
    assert image.instructions["USER"] == str(USER) and f"--uid {USER}" in (root / "useradd").read_text()
    home = Path(image.environment["HOME"])
    home.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(home, USER, USER)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that the image's user may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="isoviz-image-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def image(folder: Path) -> Image:
    root = folder / "image"
    root.mkdir()
    image = Image(root)
    build(ROOT, image)
    return image


def printed(process: subprocess.Popen[str], text: str) -> list[str]:
    """The lines of its output, up to the first with this text."""
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.strip())
        if text in line:
            return lines
    raise AssertionError("\n".join(lines))


def get(url: str, **headers: str) -> tuple[int, Mapping[str, str]]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def test_the_image_holds_the_app_and_nothing_of_this_checkout(image: Image) -> None:
    tops = {path.name for path in image.folder.iterdir()}
    assert {"isoviz", "dashboard", "pages", ".streamlit", "pyproject.toml"} <= tops
    assert not tops & {".git", ".venv", ".env", "tests", "factory", "benchmarks", "space"}


@pytest.mark.nightly
def test_the_container_serves_and_hands_its_run_back_when_it_is_stopped(image: Image) -> None:
    assert not image.healthy()
    app = image.start([*image.argv("ENTRYPOINT"), *image.argv("CMD"), "--port", str(image.port)])
    try:
        link = printed(app, "Runner's link:")[-1].split()[-1]
        assert link.startswith(f"http://localhost:{image.port}/?token=")
        until(image.healthy)
        server = psutil.Process(app.pid)
        assert server.cwd() == str(image.folder)
        assert server.uids().real == (USER if os.geteuid() == 0 else os.getuid())
        assert get(f"http://localhost:{image.port}/")[0] == 401
        assert get(link)[0] in (200, 401)  # after the redirect that sets the cookie, which this client does not keep
        data = Path(image.instructions["VOLUME"])
        assert data == Path(image.environment["ISOVIZ_HOME"]) and (data / "links.json").is_file()

        words = ["train", "--queue", "--epochs", "90", "--threads", "1"]
        assert image.run(["isoviz", *words]) == 0
        store = Store(data)
        (row,) = store.list()
        until(lambda: (store.get(row.id).progress or 0) and store.get(row.id).progress.step > 1)  # type: ignore[union-attr]
        family = server.children(recursive=True)
        app.send_signal(signal.SIGTERM)
        app.communicate(timeout=120)
        assert app.returncode == 0
        assert (store.get(row.id).status, store.get(row.id).resume) == ("queued", True)
        until(lambda: not any(process.is_running() for process in family))
        assert not image.healthy()
    finally:
        app.kill()
        app.communicate()


def compose(**variables: str) -> dict[str, Any]:
    """compose.yaml with these variables, as Compose reads it: `${NAME:?message}` must be set."""

    def value(match: re.Match[str]) -> str:
        name, kind, default = match.groups()
        if not variables.get(name) and kind == "?":
            raise LookupError(default)
        return variables.get(name) or default

    text = re.sub(r"\$\{(\w+):([?-])([^}]*)\}", value, (ROOT / "compose.yaml").read_text())
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def test_compose_follows_its_schema_and_has_no_default_password() -> None:
    example = dict(re.findall(r"(?m)^(\w+)=(.*)$", (ROOT / ".env.example").read_text()))
    with pytest.raises(LookupError, match=r"copy \.env\.example"):
        compose(**example)
    document = compose(DATABASE_PASSWORD="made up")
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    services = document["services"]
    assert services["worker"]["deploy"]["replicas"] == 2
    volumes = [volume.partition(":")[0] for service in services.values() for volume in service["volumes"]]
    assert set(volumes) == set(document["volumes"])


@pytest.mark.nightly
def test_the_workers_of_compose_train_what_the_app_queued(image: Image, folder: Path) -> None:
    password, port, programs = "made up", free_port(), installed()
    services = compose(DATABASE_PASSWORD=password)["services"]
    checking = [*services["database"]["healthcheck"]["test"][1:], f"--port={port}"]
    assert subprocess.run([programs / checking[0], *checking[1:]], capture_output=True).returncode != 0
    with Server(programs, port=port, password=password) as database:
        assert subprocess.run([programs / checking[0], *checking[1:]], capture_output=True).returncode == 0
        database.create("isoviz")
        environment = services["worker"]["environment"]
        assert environment == {name: services["app"]["environment"][name] for name in environment}
        address = environment["ISOVIZ_STORE"].replace("@database/", f"@127.0.0.1:{port}/")
        home = folder / "shared"
        home.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(home, USER, USER)
        variables = environment | {"ISOVIZ_STORE": address, "HOME": str(home), "ISOVIZ_HOME": str(home)}
        words = [*image.argv("ENTRYPOINT"), *services["worker"]["command"]]
        with pytest.MonkeyPatch.context() as patch:
            for name in ("ISOVIZ_HOME", "PGPASSWORD"):
                patch.setenv(name, variables[name])
            words_of_app = [
                "train",
                "--queue",
                "--seeds",
                "0",
                "1",
                "--epochs",
                "1",
                "--max-train",
                "64",
                "--threads",
                "1",
            ]
            queued = image.start(["isoviz", *words_of_app], **variables)
            assert queued.wait(timeout=120) == 0, queued.stdout and queued.stdout.read()
            workers = [image.start(words, **variables) for _ in range(2)]
            try:
                store = Store(address)
                assert len(store.list()) == 2
                until(lambda: [row.status for row in store.list()] == ["finished"] * 2, seconds=240)
            finally:
                for worker in workers:
                    worker.send_signal(signal.SIGTERM)
                output = [worker.communicate(timeout=120)[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], output


@pytest.mark.nightly
def test_the_space_is_a_read_only_demo_that_can_be_embedded(folder: Path) -> None:
    card = yaml.safe_load((ROOT / "space" / "README.md").read_text().split("---")[1])
    context, root = folder / "space", folder / "space-image"
    shutil.copytree(ROOT / "space", context)
    shutil.copy(ROOT / "requirements.txt", context)
    built(ROOT, context)
    root.mkdir()
    image = Image(root)
    build(context, image)
    parser = DockerfileParser(path=str(context))
    assert card["sdk"] == "docker" and f"EXPOSE {card['app_port']}\n" in parser.content
    app = image.start(image.argv("CMD"), SPACE_HOST="ada-isoviz.hf.space")
    try:
        lines = printed(app, "Read-only")
        assert "IsoViz is served at https://ada-isoviz.hf.space" in lines
        address = f"http://127.0.0.1:{image.port}"
        until(lambda: get(f"{address}/_stcore/health")[0] == 200)
        status, headers = get(
            f"{address}/",
            **{"Host": "ada-isoviz.hf.space", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        )
        assert status == 200 and "x-frame-options" not in headers
        assert "frame-ancestors 'self' https://huggingface.co" in headers["content-security-policy"]
        assert get(f"{address}/", Host="evil.example")[0] == 403
        request = urllib.request.Request(f"{address}/_stcore/upload_file/x/y", method="PUT", data=b"x")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request, timeout=30)
    finally:
        app.terminate()
        app.communicate(timeout=60)
    assert app.returncode == 0
