"""A small Hugging Face hub on this machine's loopback: the endpoints that the real client calls, and the ways in which they fail."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Repository:
    """One repository: branches and commits → files."""

    kind: str
    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    gated: bool = False


@dataclass
class LoopbackHub:
    """Its repositories, the requests it received, and the faults to simulate.

    Attributes:
        repositories: by kind and id, `models/org/name`.
        asked: method and path of every request.
        ranges: the Range header of every download.
        cut: file name → bytes after which the connection of its next download is dropped, once.
        down: answer every request of a file's content with 503.
        down_after_cut: be down from the next cut on.
    """

    endpoint: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)
    down: bool = False
    down_after_cut: bool = False

    def add(self, name: str, folder: Path, *, kind: str = "models", branch: str = "main", gated: bool = False) -> str:
        """Serve a folder's files as the newest commit of a branch; the commit."""
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        commit = hashlib.sha1(json.dumps([name, branch, *map(_digest, files.values())]).encode()).hexdigest()
        repository = self.repositories.setdefault(f"{kind}/{name}", Repository(kind, {}, {}))
        repository.commits[commit], repository.branches[branch], repository.gated = files, commit, gated
        return commit

    def downloads(self) -> list[str]:
        """Names of the files whose content was asked for, in order."""
        return [line.rsplit("/", 1)[1] for line in self.asked if line.startswith("GET") and "/resolve/" in line]


@contextmanager
def serving() -> Iterator[LoopbackHub]:
    """A hub that listens until the block ends."""
    hub = LoopbackHub()

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        """Nothing on stderr: the tests look at it."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    body = ""

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self._answer()

    def _answer(self) -> None:
        address = urlsplit(self.path)
        path = unquote(address.path).strip("/")
        self.served.asked.append(f"{self.command} /{path}")
        if not path:
            self._send(200, b"ok")
        elif path.startswith("api/") and ("/tree/" in path or "/paths-info/" in path):
            self._tree(path.removeprefix("api/"))
        elif path.startswith("api/"):
            self._info(path.removeprefix("api/"))
        elif "/resolve/" in path:
            self._file(path)
        else:
            self._fail(404, "EntryNotFound")

    def _info(self, path: str) -> None:
        name, _, revision = path.partition("/revision/")
        repository = self.served.repositories.get(name)
        if repository is None:
            return self._fail(404, "RepoNotFound")
        commit = self._commit(repository, revision or "main")
        if commit is None:
            return self._fail(404, "RevisionNotFound")
        files = repository.commits[commit]
        siblings = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
        info = {"id": name.partition("/")[2], "sha": commit, "siblings": siblings, "private": False, "tags": []}
        return self._json(info)

    def _tree(self, path: str) -> None:
        """The entries of a folder, or those of the paths in the request's body."""
        word = "tree" if "/tree/" in path else "paths-info"
        name, _, rest = path.partition(f"/{word}/")
        repository = self.served.repositories.get(name)
        if repository is None:
            return self._fail(404, "RepoNotFound")
        commit, within = self._split(repository, rest if "/" in rest else rest + "/")
        if commit is None:
            return self._fail(404, "RevisionNotFound")
        files = repository.commits[commit]
        folders = {str(parent) for file in files for parent in Path(file).parents}
        entries = {
            folder: {"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in folders - {"."}
        }
        entries |= {
            file: {"type": "file", "path": file, "oid": _digest(content), "size": len(content)}
            for file, content in files.items()
        }
        if word == "paths-info":
            paths = parse_qs(self.body).get("paths", [])
            return self._json([entries[path] for path in paths if path in entries])
        if (within or ".") not in folders:
            return self._fail(404, "EntryNotFound", commit=commit)
        return self._json([entry for path, entry in entries.items() if str(Path(path).parent) == (within or ".")])

    def _file(self, path: str) -> None:
        name, _, rest = path.partition("/resolve/")
        key = name if name.startswith("datasets/") else f"models/{name}"
        repository = self.served.repositories.get(key)
        if repository is None:
            return self._fail(404, "RepoNotFound")
        if repository.gated:
            return self._fail(401, "GatedRepo", "Access to it is restricted.")
        commit, file = self._split(repository, rest)
        if commit is None:
            return self._fail(404, "RevisionNotFound")
        content = repository.commits[commit].get(file)
        if content is None:
            return self._fail(404, "EntryNotFound", commit=commit)
        large = file.endswith(".safetensors")  # those are named by another digest, as on the hub
        etag = hashlib.sha256(content).hexdigest() if large else _digest(content)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        if self.command == "HEAD":
            return self._send(200, content, headers)
        if self.served.down:
            return self._fail(503, "")
        self.served.ranges.append(self.headers.get("Range"))
        start = int((self.headers.get("Range") or "bytes=0-")[len("bytes=") :].split("-")[0])
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        end = self.served.cut.pop(file, None)
        return self._send(206 if start else 200, content[start:], headers, end)

    @staticmethod
    def _split(repository: Repository, rest: str) -> tuple[str | None, str]:
        for revision in sorted({*repository.branches, *repository.commits}, key=len, reverse=True):
            if rest.startswith(f"{revision}/"):
                return repository.branches.get(revision, revision), rest.removeprefix(f"{revision}/")
        return None, ""

    @staticmethod
    def _commit(repository: Repository, revision: str) -> str | None:
        commit = repository.branches.get(revision, revision)
        return commit if commit in repository.commits else None

    def _json(self, document: Any) -> None:
        self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _fail(self, status: int, code: str, message: str = "", commit: str = "") -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message, "X-Repo-Commit": commit}
        self._send(status, b"", {name: value for name, value in headers.items() if value})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, end: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[:end])
        if end is not None:
            self.close_connection = True
            self.served.down = self.served.down_after_cut


def _digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()
