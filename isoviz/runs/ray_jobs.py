"""Queued runs over a Ray cluster, through the HTTP interface of Ray Jobs. Ray itself is not needed here.

The dispatcher claims a run once the cluster has room for it, and submits a job that trains it. Its state is in the store, so a
restarted dispatcher continues with the jobs of its predecessor. A job may train only the attempt that it was submitted for, and only
once, so nothing runs twice.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from filelock import Timeout

from isoviz import devices
from isoviz.boundary import is_loopback
from isoviz.config import RunConfig
from isoviz.errors import InputError, StoreError, shortened
from isoviz.events import Checkpointed, Lost, Stopped
from isoviz.runs.identity import owner_of
from isoviz.runs.recovery import QUIET_SECONDS, end, lost, mark_lost, slot_lock
from isoviz.runs.runner import SAVE_SECONDS
from isoviz.runs.store import RunRow, Store, StoreUnavailableError

POLL_SECONDS: Final = 2.0
SWEEP_SECONDS: Final = 5.0
REPORT_SECONDS: Final = 10.0
"""Ray's list of free resources may be this old: Ray updates it every 5 seconds, and caches it."""
MOST_LOSSES: Final = 3
"""A run that is lost this often without a new checkpoint is not resumed again."""
_TIMEOUTS: Final = (5.0, 30.0)  # to connect, to answer
_WAITING: Final = 50  # queued runs that are looked at in one turn
_NODES: Final = "/nodes?view=summary"
_USAGE: Final = re.compile(r"^([\d.]+)/([\d.]+) (CPU|GPU)\b", re.MULTILINE)
_RAY_LOG: Final = re.compile(r"^Running entrypoint|INFO job_manager\.py")
"""Lines that Ray itself writes into the log of a job."""
_ENVIRONMENT: Final = (
    "PGPASSFILE",
    "ISOVIZ_ROOTS",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_DATASETS_CACHE",
    "HF_TOKEN_PATH",
    "HF_ENDPOINT",
    "HF_HUB_OFFLINE",
)
"""Variables passed on to jobs. Ray shows them to everyone who can list jobs, so they are paths and switches, never secrets."""

Resources = dict[str, float]
"""CPUs and GPUs, by Ray's names."""


class ClusterUnavailableError(InputError):
    """The cluster does not answer, perhaps only for now."""


@dataclass(frozen=True)
class Node:
    """What a node has in all, and what no job has taken; missing: none."""

    free: Resources
    total: Resources


@dataclass(frozen=True)
class Job:
    """A job that the cluster knows.

    Attributes:
        active: it waits or runs.
        exit_code: as `subprocess` has it; None where Ray does not know.
        message: the last line that it printed, or why Ray could not start it.
    """

    active: bool
    exit_code: int | None
    message: str


class Cluster:
    """A Ray cluster at the address of its dashboard.

    Args:
        address: `http://HOST:PORT` or `https://…`.
        token: see `token_of`.

    Raises:
        InputError: the address is invalid or unsafe: a cluster on another machine must use https and require a token.
        ClusterUnavailableError: it does not answer.
    """

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address.rstrip("/")
        self.on_loopback = _check_address(self.address)
        self._token = token
        self._session = requests.Session()
        self._session.trust_env = not self.on_loopback  # no proxy in between
        self._check_access()

    def nodes(self) -> list[Node]:
        """Each node's resources, as of Ray's last update. With both of its autoscalers, Ray gives them as text: `1.0/4.0 CPU`."""
        body = self._json(self._send("GET", _NODES))
        texts = ((body.get("data") or {}).get("nodeLogicalResources") or {}).values()
        usages = [{name: (float(used), float(total)) for used, total, name in _USAGE.findall(text)} for text in texts]
        return [
            Node(
                free={name: total - used for name, (used, total) in usage.items()},
                total={name: total for name, (_, total) in usage.items()},
            )
            for usage in usages
        ]

    def job(self, name: str) -> Job | None:
        """A job; None if the cluster does not know it, because it was restarted or never had it."""
        answer = self._send("GET", f"/api/jobs/{name}")
        if answer.status_code == 404 and name in answer.text:
            return None
        body = self._json(answer)
        code = body.get("driver_exit_code")
        if isinstance(code, int) and code > 128:  # as a shell has it
            code = 128 - code
        killed = code is not None and code < 0  # what it printed before has nothing to do with that
        lines = [line for line in str(body.get("message") or "").splitlines() if not _RAY_LOG.search(line)]
        return Job(body.get("status") in ("PENDING", "RUNNING"), code, "" if killed else _last_line("\n".join(lines)))

    def submit(self, name: str, entrypoint: str, environment: Mapping[str, str], need: Resources) -> None:
        """Submit a job, unless the cluster already has it.

        Raises:
            InputError: the cluster rejects the job.
            ClusterUnavailableError: the cluster may or may not have the job.
        """
        answer = self._send(
            "POST",
            "/api/jobs/",
            submission_id=name,
            entrypoint=entrypoint,
            runtime_env={"env_vars": dict(environment)},
            entrypoint_num_cpus=need["CPU"],
            entrypoint_num_gpus=need["GPU"],
        )
        if "already exists" in answer.text:
            return
        if answer.status_code == 400:
            raise InputError(f"ray: the cluster rejects a job: {_last_line(answer.text)}", field="ray")
        self._json(answer)

    def stop(self, name: str) -> None:
        """Stop a job: SIGTERM, and three seconds later SIGKILL."""
        answer = self._send("POST", f"/api/jobs/{name}/stop")
        if answer.status_code != 404:
            self._json(answer)

    def _check_access(self) -> None:
        if not self.on_loopback and self._send("GET", _NODES, anonymous=True).ok:
            raise InputError(
                f"ray: {self.address} lets anyone run programs without a token",
                field="ray",
                advice="Start the cluster with RAY_AUTH_MODE=token.",
            )
        self.nodes()

    def _send(self, method: str, path: str, *, anonymous: bool = False, **body: Any) -> requests.Response:
        """Send a request, with the token unless `anonymous`."""
        token = None if anonymous else self._token

        def authorise(request: requests.PreparedRequest) -> requests.PreparedRequest:
            if token:  # a function, so that no entry of ~/.netrc takes its place
                request.headers["Authorization"] = f"Bearer {token}"
            return request

        try:
            answer = self._session.request(
                method,
                self.address + path,
                json=body or None,
                auth=authorise,
                timeout=_TIMEOUTS,
                allow_redirects=False,
            )
        except requests.exceptions.SSLError:
            raise InputError(f"ray: the certificate of {self.address} is not trusted", field="ray") from None
        except requests.RequestException as error:
            raise ClusterUnavailableError(
                f"ray: {self.address} does not answer ({type(error).__name__})", field="ray"
            ) from error
        if answer.status_code in (401, 403) and not anonymous:
            raise InputError(
                f"ray: {self.address} rejects the token" if token else f"ray: {self.address} needs a token",
                field="ray",
                advice="Set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH.",
            )
        return answer

    def _json(self, answer: requests.Response) -> dict[str, Any]:
        if answer.ok:
            with suppress(ValueError):
                body = answer.json()
                if isinstance(body, dict):
                    return body
        raise ClusterUnavailableError(
            f"ray: {self.address} is not a Ray dashboard, or has a problem (HTTP {answer.status_code}: {_last_line(answer.text)})",
            field="ray",
        )


def token_of(environment: Mapping[str, str]) -> str | None:
    """The cluster's token, from where Ray's own tools take it: `RAY_AUTH_TOKEN`, `RAY_AUTH_TOKEN_PATH`, `~/.ray/auth_token`.

    Raises:
        InputError: `RAY_AUTH_TOKEN_PATH` cannot be read.
    """
    if token := environment.get("RAY_AUTH_TOKEN", "").strip():
        return token
    chosen = environment.get("RAY_AUTH_TOKEN_PATH")
    file = Path(chosen or "~/.ray/auth_token").expanduser()
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError) as error:
        if chosen:
            raise InputError(f"ray: RAY_AUTH_TOKEN_PATH cannot be read: '{shortened(chosen)}'", field="ray") from error
        return None


class Dispatcher:
    """Submits queued runs to a cluster and follows them until they end.

    Dispatchers on several machines may serve one cluster; each follows the runs that it has claimed.

    Args:
        store: whose runs. Every node must reach it, and see its folder under the same path.
        cluster: trains them.
        cpus, gpus: what the job of a run gets; of GPUs, as many for each of its processes.
        say: prints a line for the user.

    Raises:
        InputError: jobs could not open the store, or only with a password that Ray would show.
    """

    def __init__(
        self, store: Store, cluster: Cluster, *, cpus: int = 1, gpus: int = 0, say: Callable[[str], None] = print
    ) -> None:
        if store.has_password:
            raise InputError(
                "ray: the store's URL contains a password, which Ray would show to everyone who lists jobs",
                field="ray",
                advice="Put it into a file that all nodes see, and set PGPASSFILE.",
            )
        if store.url.startswith("sqlite") and not cluster.on_loopback:
            raise InputError("ray: a cluster needs a PostgreSQL store: SQLite must stay on one machine", field="ray")
        self._store = store
        self._cluster = cluster
        self._cpus, self._gpus = cpus, gpus
        self._say = say
        self._owner = owner_of(f"ray {cluster.address}")
        self._submitted: dict[str, tuple[float, Resources]] = {}  # runs that Ray's list may not show yet
        self._stop_seen: dict[str, float] = {}
        self._said: set[str] = set()
        self._sweep_due = 0.0

    def serve(self, idle: float, stop: Callable[[], bool]) -> None:
        """Work until `stop`, or until no run has been queued or running for `idle` seconds. Jobs continue.

        Raises:
            InputError: another dispatcher serves the cluster from this machine, or the cluster rejects the token or a job.
        """
        try:
            with slot_lock(self._store, self._owner).acquire(timeout=0):
                self._serve(idle, stop)
        except Timeout:
            raise InputError(
                f"ray: another worker on this machine already serves {self._cluster.address}", field="ray"
            ) from None

    def _serve(self, idle: float, stop: Callable[[], bool]) -> None:
        busy, waiting = time.monotonic(), False
        while not stop() and time.monotonic() - busy < idle:
            try:
                if self.turn():
                    busy = time.monotonic()
                if waiting:
                    self._say(f"{self._cluster.address} answers again")
                waiting = False
            except (ClusterUnavailableError, StoreUnavailableError) as error:
                if not waiting:
                    self._say(f"{error}. Waiting for it.")
                waiting = True
                busy = time.monotonic()
            time.sleep(POLL_SECONDS)

    def turn(self) -> bool:
        """Follow this dispatcher's runs, and submit as many more as fit on the cluster.

        Returns:
            Whether there is anything to wait for.
        """
        mine = [row for row in self._store.held_runs() if row.owner == self._owner and row.status == "running"]
        now = time.monotonic()
        for row in mine:
            if row.pid is None:  # no process yet that sends a heartbeat
                with _unless_changed():
                    self._store.heartbeat(row.id, row.attempt)
                self._submitted[row.id] = (now, self._need(row.config))
        self._stop_seen = {row.id: self._stop_seen[row.id] for row in mine if row.id in self._stop_seen}
        if mine:
            quiet = {row.id for row in self._store.held_runs(QUIET_SECONDS)}
            for row in mine:
                with _unless_changed():
                    self._follow(row, quiet=row.id in quiet)
        if now >= self._sweep_due:
            mark_lost(self._store)
            self._resume_lost()
            self._sweep_due = now + SWEEP_SECONDS
        return self._hand_over() or bool(mine)

    def _follow(self, row: RunRow, *, quiet: bool) -> None:
        """End a run whose job ended without reporting it. A process with a heartbeat reports for itself."""
        if row.stop_requested:
            self._stop(row)
        elif row.pid is None or quiet:
            job = self._cluster.job(job_name(row))
            if job is None and row.pid is None:
                self._store.release(row.id, row.attempt)
            elif job is None:
                self._lose(row, lost(None, "the Ray cluster no longer has its job"))
            elif not job.active:
                self._lose(row, lost(job.exit_code, job.message))

    def _stop(self, row: RunRow) -> None:
        signals = self._store.signals(row.id)
        seen = self._stop_seen.setdefault(row.id, time.monotonic())
        begun = row.pid is not None
        if begun and not signals.at_once and time.monotonic() - seen < SAVE_SECONDS:
            job = self._cluster.job(job_name(row))
            if job is not None and job.active:
                return  # it may be saving a checkpoint
        else:
            self._cluster.stop(job_name(row))
            job = self._cluster.job(job_name(row)) if begun else None
        if job is None or not job.active:
            end(self._store, row.id, row.attempt, Stopped(step=signals.checkpoint_step, forced=begun))

    def _lose(self, row: RunRow, event: Lost) -> None:
        if self._losses(row) + 1 >= MOST_LOSSES:
            advice = (
                f"Lost {MOST_LOSSES} times without a new checkpoint, so it does not resume by itself. {event.advice}"
            )
            event = event.model_copy(update={"advice": advice})
        if end(self._store, row.id, row.attempt, event):
            self._say(f"run {row.id} is lost: {event.message}")
        self._sweep_due = 0.0

    def _losses(self, row: RunRow) -> int:
        """How often a run was lost since its last checkpoint."""
        saved = self._store.newest_of_kind(row.id, Checkpointed)
        return len(self._store.events_of_kind(row.id, Lost, since=0.0 if saved is None else saved[0]))

    def _resume_lost(self) -> None:
        """Queue this dispatcher's lost runs again, no matter which program marked them lost."""
        for row in self._store.list(status="lost"):
            if row.owner == self._owner and not row.stop_requested:
                with _unless_changed():
                    self._resume(row)

    def _resume(self, row: RunRow) -> None:
        if self._losses(row) >= MOST_LOSSES:
            self._say_once(f"run {row.id} was lost {MOST_LOSSES} times without a new checkpoint and stays lost")
            return
        if row.host not in self._store.hosts():
            self._say_once(f"run {row.id} stays lost: {row.host}, where its checkpoints are, has another ISOVIZ_HOME")
            return
        job = self._cluster.job(job_name(row))
        if job is not None and job.active:  # cut off from the store: it must not write beside its successor
            self._cluster.stop(job_name(row))
        elif self._store.release(row.id, row.attempt):
            self._say(f"run {row.id} is back in the queue")

    def _hand_over(self) -> bool:
        """Submit runs while there is room. Returns whether one was submitted, or waits for room."""
        waiting = self._store.list(status="queued", order="queue", limit=_WAITING)
        waiting = [row for row in waiting if row.owner is None]
        if not waiting:
            return False
        nodes = self._cluster.nodes()
        now = time.monotonic()
        self._submitted = {run: entry for run, entry in self._submitted.items() if now - entry[0] < REPORT_SECONDS}
        for _, need in self._submitted.values():
            take(nodes, need)
        handed = 0
        for row in waiting:
            need = self._need(row.config)
            if nodes and not any(fits(need, node.total) for node in nodes):
                amounts = ", ".join(f"{amount:g} {name}" for name, amount in need.items())
                self._say_once(f"run {row.id} waits for a node with {amounts}")
                continue
            if not any(fits(need, node.free) for node in nodes):
                return True
            claimed = self._store.claim(self._owner, "ray", only=row.id)
            if claimed is None:  # taken by others, or the checkpoints are elsewhere
                continue
            take(nodes, need)
            self._submitted[claimed.id] = (now, need)
            self._submit(claimed, need)
            handed += 1
        return handed > 0

    def _submit(self, row: RunRow, need: Resources) -> None:
        python = os.environ.get("ISOVIZ_PYTHON", "python")
        words = [python, "-m", "isoviz", "worker", "--run", row.id, "--attempt", str(row.attempt)]
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment |= {"ISOVIZ_STORE": self._store.url, "ISOVIZ_HOME": str(self._store.folder)}
        if not need["GPU"]:  # Ray hides the other jobs' GPUs only from a job that has one
            environment[devices.VISIBLE] = ""
        try:
            self._cluster.submit(job_name(row), f"exec {shlex.join(words)}", environment, need)
        except ClusterUnavailableError:
            raise  # the next turn asks whether the cluster has the job
        except InputError:
            self._store.release(row.id, row.attempt)
            raise
        self._say(f"run {row.id}: {row.name}")

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._say(line)

    def _need(self, config: RunConfig) -> Resources:
        return {"CPU": float(self._cpus), "GPU": float(self._gpus * config.processes)}


@contextmanager
def _unless_changed() -> Iterator[None]:
    """Ignore that another program has deleted, ended or resumed the run in the meantime."""
    try:
        yield
    except StoreUnavailableError:
        raise
    except StoreError:
        pass


def job_name(row: RunRow) -> str:
    """The id under which Ray knows the job of a run's current attempt."""
    return f"isoviz-{row.id}-{row.attempt}"


def fits(need: Resources, available: Resources) -> bool:
    """Whether there is enough of everything."""
    return all(available.get(name, 0.0) >= amount for name, amount in need.items())


def take(nodes: list[Node], need: Resources) -> bool:
    """Take resources from the first node that has them free; False, and nothing taken, if none has."""
    for node in nodes:
        if fits(need, node.free):
            node.free.update({name: node.free.get(name, 0.0) - amount for name, amount in need.items()})
            return True
    return False


def _check_address(address: str) -> bool:
    """Whether an address is on this machine. Raises `InputError` for one that is not safe, or none."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port == 0 or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise InputError(
            f"ray: expected http://HOST:PORT or https://HOST (got '{shortened(address)}')",
            field="ray",
        )
    if parts.username or parts.password:
        raise InputError("ray: the address contains a user name; set RAY_AUTH_TOKEN instead", field="ray")
    if not is_loopback(host) and parts.scheme != "https":
        raise InputError(
            f"ray: over http, others could read the token for {host}",
            field="ray",
            advice="Use https, or a tunnel: ssh -L 8265:localhost:8265 HOST, then --ray http://127.0.0.1:8265",
        )
    return is_loopback(host)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip(" .")]
    return shortened(lines[-1].strip(), 160) if lines else ""
