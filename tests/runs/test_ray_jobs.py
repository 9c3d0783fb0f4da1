"""The dispatcher for Ray, against a stand-in for Ray's HTTP interface: which servers it trusts, what it submits, and how it follows up."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from isoviz.__main__ import main
from isoviz.config import RunConfig
from isoviz.errors import InputError, StoreError
from isoviz.events import Checkpointed, Finished
from isoviz.runs import ray_jobs
from isoviz.runs.execution import execute, train_run
from isoviz.runs.ray_jobs import Cluster, Dispatcher, job_name, token_of
from isoviz.runs.store import RunRow, Store
from tests.runs.fake_training import SPEC
from tests.runs.fake_training import train as fake_train
from tests.runs.observing import LONG, kinds, posix, until
from tests.runs.postgres_server import Address

TOKEN = "t0ken"


class Ray:
    """The state of a cluster's server.

    Attributes:
        nodes: used and available resources of each, in Ray's format.
        jobs: submission id → the body that it was submitted with, and its status.
        submissions: the ids, in order, refused ones too.
        stopped: ids of jobs with a stop request.
        token: required; None: no authentication.
        broken: respond with errors.
    """

    def __init__(self) -> None:
        self.nodes = ["0.0/2.0 CPU\n0B/14.97GiB memory", "1.0/2.0 CPU\n0.0/1.0 GPU\n0.0/1.0 accelerator_type:T4"]
        self.jobs: dict[str, dict[str, Any]] = {}
        self.submissions: list[str] = []
        self.stopped: list[str] = []
        self.token: str | None = TOKEN
        self.broken = False
        self.address = "http://127.0.0.1:8265"

    def answer(self, method: str, path: str, authorization: str | None, body: dict[str, Any]) -> tuple[int, Any]:
        if self.token is not None and authorization != f"Bearer {self.token}":
            return (401 if authorization is None else 403), "Unauthorized"
        if self.broken:
            return 500, "Traceback\nNo available agent"
        match method, path.strip("/").split("/"):
            case "GET", ["nodes?view=summary"]:
                return 200, {"data": {"nodeLogicalResources": dict(enumerate(self.nodes))}}
            case "POST", ["api", "jobs"]:
                self.submissions.append(body["submission_id"])
                if body["submission_id"] in self.jobs:
                    return 500, "Traceback\nValueError: Job with submission_id … already exists."
                self.jobs[body["submission_id"]] = {**body, "status": "PENDING"}
                return 200, {"submission_id": body["submission_id"]}
            case "POST", ["api", "jobs", name, "stop"]:
                self.stopped.append(name)
                return (200, {"stopped": True}) if name in self.jobs else (404, f"Job {name} does not exist")
            case "GET", ["api", "jobs", name]:
                return (200, self.jobs[name]) if name in self.jobs else (404, f"Job {name} does not exist")
        raise AssertionError(f"{method} {path}")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    known = Ray()

    def send(_: HTTPAdapter, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        assert request.path_url is not None and request.method is not None
        body = json.loads(request.body or "{}")
        status, answer = known.answer(request.method, request.path_url, request.headers.get("Authorization"), body)
        response = requests.Response()
        response.status_code = status
        response._content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        return response

    monkeypatch.setattr(HTTPAdapter, "send", send)
    return known


@pytest.fixture
def dispatcher(ray: Ray, local: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dispatcher]:
    """It is at work, looks for lost runs in every turn, and takes each process for quiet."""
    monkeypatch.setattr(ray_jobs, "SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(ray_jobs, "QUIET_SECONDS", -60.0)
    made = Dispatcher(local, Cluster(ray.address, TOKEN))
    with ray_jobs.slot_lock(local, made._owner):
        yield made


def queued(store: Store, count: int = 1, **config: Any) -> list[str]:
    return store.create([RunConfig(seed=seed, params={"does": "finish"}, **config) for seed in range(count)])


def begin(store: Store, run_id: str) -> RunRow:
    """As the process of its job does."""
    row = store.get(run_id)
    store.set_worker(run_id, 2**22 + 1, 0.0, row.attempt)
    return store.get(run_id)


# ------------------------------------------------------------------------------------------------- whom it trusts


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("10.0.0.5:8265", "expected http://HOST:PORT"),
        ("ray://10.0.0.5:10001", "expected http://HOST:PORT"),
        ("http://127.0.0.1:99999", "expected http://HOST:PORT"),
        ("http://me:secret@127.0.0.1:8265", "contains a user name"),
        ("http://10.0.0.5:8265", "others could read the token for 10.0.0.5"),
        ("http://127.0.0.1:1", "does not answer"),
    ],
)
def test_an_address_is_refused_in_one_line(
    address: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["worker", "--store", str(tmp_path), "--ray", address]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and "secret" not in said


def test_a_remote_cluster_must_require_a_token(
    ray: Ray, local: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"  # must not take the token's place
    netrc.write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setattr(ray_jobs, "_check_address", lambda address: False)
    cluster = Cluster(ray.address, TOKEN)
    with pytest.raises(InputError, match="SQLite must stay on one machine"):
        Dispatcher(local, cluster)
    ray.token = None
    with pytest.raises(InputError, match="lets anyone run programs"):
        Cluster(ray.address, TOKEN)


def test_the_token_is_needed_and_must_be_right(ray: Ray) -> None:
    assert Cluster(ray.address, TOKEN).nodes()[0].free == {"CPU": 2.0}
    with pytest.raises(InputError, match="needs a token"):
        Cluster(ray.address)
    with pytest.raises(InputError, match="rejects the token"):
        Cluster(ray.address, "wrong")


def test_the_token_is_where_ray_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert token_of({"RAY_AUTH_TOKEN": "first", "RAY_AUTH_TOKEN_PATH": str(file)}) == "first"
    assert token_of({"RAY_AUTH_TOKEN_PATH": str(file)}) == TOKEN
    assert token_of({}) is None
    with pytest.raises(InputError, match="RAY_AUTH_TOKEN_PATH cannot be read"):
        token_of({"RAY_AUTH_TOKEN_PATH": str(tmp_path / "none")})


def test_a_store_with_a_password_is_refused(ray: Ray, postgres: Address) -> None:
    for url in (
        postgres("postgres").replace("isoviz@", "isoviz:secret@"),
        postgres("postgres") + "&password=secret",
    ):
        store = Store(url)
        with pytest.raises(InputError, match="contains a password") as refused:
            Dispatcher(store, Cluster(ray.address, TOKEN))
        assert "secret" not in str(refused.value)
        store.close()


def test_options_of_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--store", str(tmp_path), "--gpus", "1"]) == 2
    assert "--gpus: only with --ray" in capsys.readouterr().err
    assert main(["worker", "--store", str(tmp_path), "--ray", "http://127.0.0.1:1", "--cpus", "0"]) == 2
    assert "--cpus: input should be greater than or equal to 1 (got 0)" in capsys.readouterr().err
    assert main(["worker", "--store", str(tmp_path), "--run", "unknown", "--attempt", "1"]) == 2
    assert "unknown" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- what it hands over


def test_it_hands_over_what_the_cluster_can_start(ray: Ray, local: Store, dispatcher: Dispatcher) -> None:
    ids = queued(local, 5)
    assert dispatcher.turn() and dispatcher.turn()
    assert [local.get(run_id).status for run_id in ids] == ["running"] * 3 + ["queued"] * 2
    assert ray.submissions == [job_name(local.get(run_id)) for run_id in ids[:3]]
    ray.nodes = ["2.0/2.0 CPU", "2.0/2.0 CPU"]  # Ray has counted them
    for run_id in ids[:3]:
        row = begin(local, run_id)
        local.append(run_id, [Finished(metrics={}, isotropy={}, timing={})], attempt=row.attempt)
    dispatcher.turn()
    assert len(ray.submissions) == 3
    ray.nodes = ["0.0/2.0 CPU", "1.0/2.0 CPU"]
    dispatcher._submitted.clear()  # ten seconds later
    dispatcher.turn()
    assert len(ray.submissions) == 5
    for run_id in ids[3:]:
        row = begin(local, run_id)
        local.append(run_id, [Finished(metrics={}, isotropy={}, timing={})], attempt=row.attempt)
    assert not dispatcher.turn()


@pytest.mark.parametrize("file", [None, "{}"])
def test_a_run_gets_a_gpu_for_each_process_and_one_that_fits_no_node_keeps_no_others_waiting(
    ray: Ray, local: Store, file: str | None
) -> None:
    said: list[str] = []
    dispatcher = Dispatcher(local, Cluster(ray.address, TOKEN), cpus=1, gpus=1, say=said.append)
    two, one = queued(local, processes=2, accelerate_config=file) + queued(local)
    assert dispatcher.turn() and dispatcher.turn()
    assert (local.get(one).status, local.get(two).status) == ("running", "queued")
    (job,) = ray.jobs.values()
    assert (job["entrypoint_num_cpus"], job["entrypoint_num_gpus"]) == (1, 1)
    assert [line for line in said if two in line] == [f"run {two} waits for a node with 1 CPU, 2 GPU"]
    row = begin(local, one)
    local.append(one, [Finished(metrics={}, isotropy={}, timing={})], attempt=row.attempt)
    assert not dispatcher.turn(), "there is nothing to wait for"


def test_a_job_gets_paths_and_no_secrets(
    ray: Ray, local: Store, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "PGPASSWORD", "RAY_AUTH_TOKEN", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PGPASSFILE", "/shared/pgpass")
    monkeypatch.setenv("ISOVIZ_PYTHON", "/opt/my env/bin/python")
    (run_id,) = queued(local)
    dispatcher.turn()
    (job,) = ray.jobs.values()
    assert job["entrypoint"] == f"exec '/opt/my env/bin/python' -m isoviz worker --run {run_id} --attempt 1"
    assert (
        job["runtime_env"]["env_vars"].items()
        >= {
            "PGPASSFILE": "/shared/pgpass",
            "ISOVIZ_STORE": local.url,
            "ISOVIZ_HOME": str(local.folder),
            "CUDA_VISIBLE_DEVICES": "",
        }.items()
    )
    assert "secret" not in json.dumps(job)


def test_a_job_that_ray_refuses_leaves_its_run_in_the_queue(
    ray: Ray, local: Store, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = queued(local)
    answer = ray.answer
    monkeypatch.setattr(
        ray, "answer", lambda method, *rest: (400, "TypeError: no") if method == "POST" else answer(method, *rest)
    )
    with pytest.raises(InputError, match="the cluster rejects a job: TypeError: no"):
        dispatcher.turn()
    assert (local.get(run_id).status, local.get(run_id).owner) == ("queued", None)


# ------------------------------------------------------------------------------------------------ nothing runs twice


def test_only_the_process_of_the_current_attempt_trains(local: Store, tmp_path: Path) -> None:
    (run_id,) = queued(local)
    late = local.claim("a dispatcher", "ray")
    assert late is not None
    local.release(run_id, late.attempt)
    with pytest.raises(StoreError, match="cannot be run: it is queued"):
        execute(local, run_id, train=fake_train, attempt=late.attempt)
    current = local.claim("a dispatcher", "ray")
    assert current is not None
    with pytest.raises(StoreError, match="no longer at attempt 1"):
        execute(local, run_id, train=fake_train, attempt=late.attempt)
    assert not (local.folder_of(run_id) / "ran").exists()
    begin(local, run_id)
    with pytest.raises(StoreError, match="or another process trains it"):
        execute(local, run_id, train=fake_train, attempt=current.attempt)
    local.release(run_id, current.attempt)
    assert local.get(run_id).status == "running", "it has begun"


def test_the_next_dispatcher_follows_the_jobs_of_the_one_before(ray: Ray, local: Store, dispatcher: Dispatcher) -> None:
    ids = queued(local, 3)
    dispatcher.turn()
    begin(local, ids[0])
    del ray.jobs[job_name(local.get(ids[2]))]  # the first one died between claim and submission
    ray.nodes = ["2.0/2.0 CPU"]
    following = Dispatcher(local, Cluster(ray.address, TOKEN))
    assert following.turn()
    assert len(ray.submissions) == 3
    assert [local.get(run_id).status for run_id in ids] == ["running", "running", "queued"]


def test_one_dispatcher_of_a_cluster_per_machine(ray: Ray, local: Store, dispatcher: Dispatcher) -> None:
    with pytest.raises(InputError, match="already serves"):
        Dispatcher(local, Cluster(ray.address, TOKEN)).serve(0.0, lambda: False)


# ------------------------------------------------------------------------------------------------------ lost runs


def test_a_run_is_resumed_until_it_makes_no_progress(ray: Ray, local: Store, dispatcher: Dispatcher) -> None:
    (run_id,) = queued(local)

    def die(job: dict[str, Any] | None) -> None:
        dispatcher.turn()
        row = begin(local, run_id)
        if job is None:
            del ray.jobs[job_name(row)]
        else:
            ray.jobs[job_name(row)] |= job
        dispatcher._submitted.clear()
        ray.nodes = ["2.0/2.0 CPU"]
        dispatcher.turn()
        ray.nodes = ["0.0/2.0 CPU"]

    die(None)
    assert local.get(run_id).status == "queued" and local.get(run_id).resume
    die({"status": "FAILED", "driver_exit_code": -9, "message": "Job entrypoint failed\n"})
    assert local.get(run_id).status == "queued"
    dispatcher.turn()
    row = local.get(run_id)
    local.append(run_id, [Checkpointed(step=5, epoch=1, path="checkpoints/step-0000005")], attempt=row.attempt)
    for _ in range(3):
        die({"status": "FAILED", "driver_exit_code": 2, "message": "Running entrypoint …\nisoviz: no such store\n"})
    row = local.get(run_id)
    assert row.status == "lost" and row.error is not None
    assert row.error["message"] == "the worker ended with exit code 2 before its run finished: isoviz: no such store"
    assert row.error["advice"].startswith("Lost 3 times without a new checkpoint")
    submitted = len(ray.submissions)
    assert not dispatcher.turn() and len(ray.submissions) == submitted == 5
    assert kinds(local, run_id) == ["lost", "lost", "checkpointed", "lost", "lost", "lost"]


def test_a_run_whose_checkpoints_are_elsewhere_stays_lost(ray: Ray, local: Store, dispatcher: Dispatcher) -> None:
    (run_id,) = queued(local)
    dispatcher.turn()
    row = begin(local, run_id)
    local._set(run_id, host="another")
    ray.jobs[job_name(row)]["status"] = "FAILED"
    dispatcher.turn()
    assert local.get(run_id).status == "lost"


def test_a_job_cut_off_from_the_store_is_stopped_before_its_run_resumes(
    ray: Ray, local: Store, dispatcher: Dispatcher
) -> None:
    (run_id,) = queued(local)
    dispatcher.turn()
    row = begin(local, run_id)
    ray_jobs.end(local, run_id, row.attempt, ray_jobs.lost(None))  # by another program, after 30 seconds of silence
    dispatcher.turn()
    assert local.get(run_id).status == "lost" and ray.stopped == [job_name(row)]
    ray.jobs[job_name(row)]["status"] = "STOPPED"
    ray.nodes = []
    dispatcher.turn()
    assert local.get(run_id).status == "queued"


def test_a_cluster_that_does_not_answer_is_waited_for(ray: Ray, local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.01)
    said: list[str] = []
    dispatcher = Dispatcher(local, Cluster(ray.address, TOKEN), say=said.append)
    queued(local)
    ray.broken = True
    over = threading.Event()
    thread = threading.Thread(target=dispatcher.serve, args=(60.0, over.is_set))
    thread.start()
    until(lambda: said)
    ray.broken = False
    until(lambda: len(said) == 3)
    over.set()
    thread.join()
    assert "HTTP 500: No available agent" in said[0] and said[0].endswith("Waiting for it.")
    assert "answers again" in said[2] and len(ray.submissions) == 1


# ----------------------------------------------------------------------------------------------------------- stops


def test_a_run_is_stopped_before_its_job_begins(ray: Ray, local: Store, dispatcher: Dispatcher) -> None:
    (run_id,) = queued(local)
    dispatcher.turn()
    row = local.get(run_id)
    local.request_stop(run_id)
    dispatcher.turn()
    assert local.get(run_id).status == "stopped" and ray.stopped == [job_name(row)]
    with pytest.raises(StoreError):
        execute(local, run_id, train=fake_train, attempt=row.attempt)


def test_a_run_is_stopped_by_its_process_or_with_its_job(
    ray: Ray, local: Store, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = queued(local)
    dispatcher.turn()
    row = begin(local, run_id)
    local.request_stop(run_id)
    dispatcher.turn()
    assert ray.stopped == [] and local.get(run_id).status == "running", "it saves a checkpoint"
    local._set(run_id, stop_requested=0.0)  # asked again: at once
    dispatcher.turn()
    assert ray.stopped == [job_name(row)] and local.get(run_id).status == "running"
    ray.jobs[job_name(row)]["status"] = "STOPPED"
    dispatcher.turn()
    assert local.get(run_id).status == "stopped"
    assert not dispatcher.turn(), "it does not resume by itself"


@posix
def test_a_job_that_the_cluster_stops_gives_its_run_back(local: Store) -> None:
    (run_id,) = local.create([RunConfig(params=LONG)])
    row = local.claim("a dispatcher", "ray")
    assert row is not None

    def stop() -> None:
        until(lambda: "stepped" in kinds(local, run_id))
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    assert train_run(local.url, run_id, SPEC, attempt=row.attempt) == 0
    thread.join()
    after = local.get(run_id)
    assert (after.status, after.resume, after.owner) == ("queued", True, None)
    assert kinds(local, run_id)[-1] == "stopped"
