"""What each role may do, asked of the service itself: a page, a route or an agent can do no more."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoviz import tasks, vectors
from isoviz.config import RunConfig
from isoviz.errors import AccessError, DataError, InputError, ModelError
from isoviz.exploring import results
from isoviz.exploring.jobs import SENTENCES, VIEW
from isoviz.exploring.request import ViewRequest
from isoviz.jobs import guarded, queue
from isoviz.operations.access.policy import Policy, Quotas
from isoviz.operations.access.service import Service
from isoviz.operations.access.visitors import OPERATOR, Role, Visitor
from isoviz.runs.execution import execute
from isoviz.runs.store import Store
from isoviz.tasks.own import OwnTask
from isoviz.vectors import intake
from isoviz.vectors.intake import ImportRequest
from isoviz.whatif.engine import engine_of

ANNA, BEN = Visitor("anna", Role.RUNNER), Visitor("ben", Role.RUNNER)
LOOKER = Visitor("lena", Role.VIEWER)
KEY = "k" * 32
TABLE = b"sentence,label\nThe cat sleeps.,1\nCat the sleep.,0\n"
FILES = {"train": ("t.csv", TABLE), "validation": ("v.csv", b"sentence,label\nThe dog runs.,1\nDog run the.,0\n")}

WRITES: dict[str, Callable[[Service, str], object]] = {
    "launch": lambda service, run: service.launch([RunConfig()]),
    "run_again": lambda service, run: service.run_again(run),
    "stop": lambda service, run: service.stop(run),
    "resume": lambda service, run: service.resume(run),
    "delete": lambda service, run: service.delete(run),
    "rename": lambda service, run: service.rename(run, "mine"),
    "tag": lambda service, run: service.tag(run, ["mine"]),
    "note": lambda service, run: service.note(run, "mine"),
    "keep_upload": lambda service, run: service.keep_upload(FILES, tasks.get("glue/cola")),
    "keep_vectors": lambda service, run: service.keep_vectors(ImportRequest(), {"file": ("v.csv", b"x,y\n1,2\n3,4\n")}),
    "forget_vectors": lambda service, run: service.forget_vectors(KEY),
    "start_view": lambda service, run: service.start_view(ViewRequest("demo/tiny-bert", "demo/sentiment"), KEY),
    "show_vectors": lambda service, run: service.show_vectors(ViewRequest("", "vectors", KEY, "all"), KEY),
    "start_job": lambda service, run: service.start_job(VIEW, KEY, {}),
    "retry_job": lambda service, run: service.retry_job(VIEW, KEY),
    "stop_job": lambda service, run: service.stop_job(VIEW, KEY),
    "require": lambda service, run: service.require(),
}
"""Every method that changes or starts something, and how it is called with a run that is there."""
SILENT = {"release"}
"""These stop what the visitor no longer needs, and only what the visitor may stop."""
READS = {"refusal", "launch_refusal", "upload_refusal", "roots", "resolve_paths", "computing"}


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs wait; no process is started for them."""
    monkeypatch.setattr(queue, "_start_next", lambda: None)


@pytest.fixture
def acting(store: Store, tmp_path: Path) -> Callable[..., Service]:
    """`acting(ANNA, read_only=True, jobs=1)`: their service, which may read below `shared`."""

    def made(visitor: Visitor, read_only: bool = False, **quotas: int) -> Service:
        return Service(store, visitor, Policy(read_only, (tmp_path / "shared",), Quotas(**quotas)))

    return made


def everything(store: Store) -> Any:
    """What a write could change: the runs, and every file of the store and of the jobs."""
    files = sorted(str(path) for path in store.folder.parent.rglob("*") if "isoviz.db" not in path.name)
    return store.list(), files


def test_every_method_is_tested_here():
    public = {name for name, _ in inspect.getmembers(Service, inspect.isfunction) if not name.startswith("_")}
    assert public == WRITES.keys() | SILENT | READS


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    ("visitor", "read_only", "told"),
    [
        (LOOKER, False, "only allows viewing"),
        (LOOKER, True, "read-only"),
        (ANNA, True, "read-only"),
        (OPERATOR, True, "read-only"),
    ],
)
def test_viewers_change_nothing(name, visitor, read_only, told, acting, store):
    (run,) = store.create([RunConfig()], visitor=visitor.id)
    before = everything(store)
    with pytest.raises(AccessError, match=told) as caught:
        WRITES[name](acting(visitor, read_only), run)
    assert caught.value.advice and "\n" not in str(caught.value)
    assert everything(store) == before


@pytest.mark.parametrize("name", ["stop", "resume", "delete", "rename", "tag", "note"])
def test_a_runner_changes_their_own_runs_and_the_operator_all(name, acting, store):
    (run,) = acting(ANNA).launch([RunConfig()])
    if name == "resume":
        store.request_stop(run)
    before = everything(store)
    with pytest.raises(AccessError, match="belongs to someone else"):
        WRITES[name](acting(BEN), run)
    assert everything(store) == before
    WRITES[name](acting(ANNA), run)
    (another,) = acting(ANNA).launch([RunConfig()])
    if name == "resume":
        store.request_stop(another)
    WRITES[name](acting(OPERATOR), another)


def test_runs_from_the_command_line_are_the_operators(acting, store):
    (run,) = store.create([RunConfig()])
    with pytest.raises(AccessError, match="belongs to someone else"):
        acting(ANNA).stop(run)
    acting(OPERATOR).stop(run)
    (again,) = [acting(ANNA).run_again(run)]  # a configuration that everybody sees anyway, in a run of their own
    assert store.get(again).visitor == "anna" and store.get(run).visitor is None


def test_quotas_name_themselves_and_who_sets_them(acting, store):
    anna = acting(ANNA, launch=3, queued=4, threads=2)
    configs = [RunConfig(seed=seed, threads=1) for seed in range(4)]
    with pytest.raises(
        AccessError, match=r"runs of one experiment: 4 \(at most 3; the operator sets ISOVIZ_QUOTA_LAUNCH"
    ):
        anna.launch(configs)
    with pytest.raises(AccessError, match=r"threads of one run: 3 \(at most 2; .* ISOVIZ_QUOTA_THREADS"):
        anna.launch([RunConfig(threads=3)])
    with pytest.raises(AccessError, match="threads of one run: 4"):
        anna.launch([RunConfig(threads=2, processes=2)])
    with pytest.raises(AccessError, match="Only the operator"):
        anna.launch([RunConfig(accelerate_config="cluster.yaml")])
    assert store.list() == []
    anna.launch(configs[:3])
    with pytest.raises(AccessError, match=r"queued runs of one visitor: 5 \(at most 4; .* ISOVIZ_QUOTA_QUEUED"):
        anna.launch(configs[:2])
    assert anna.launch_refusal(configs[:1]) is None and anna.launch_refusal(configs[:2]) is not None
    acting(BEN, queued=4).launch(configs[:2])
    acting(OPERATOR, launch=1, queued=1, threads=1).launch(configs)
    stopped = next(row.id for row in store.list() if row.visitor == "anna")
    anna.stop(stopped)
    anna.launch(configs[:2])
    with pytest.raises(AccessError, match="queued runs of one visitor"):
        anna.resume(stopped)


def test_jobs_of_one_visitor_are_counted(acting):
    anna = acting(ANNA, jobs=2)
    first = anna.start_job(VIEW, "1" * 32, {})
    anna.start_job(SENTENCES, "2" * 32, {"texts": [["a"]]})
    with pytest.raises(AccessError, match=r"wait or run: 3 \(at most 2; the operator sets ISOVIZ_QUOTA_JOBS\)"):
        anna.start_job(VIEW, "3" * 32, {})
    assert first.status == "waiting" and anna.start_job(VIEW, "1" * 32, {}).status == "waiting", "it is there already"
    acting(BEN, jobs=2).start_job(VIEW, "3" * 32, {})
    acting(OPERATOR, jobs=0).start_job(VIEW, "4" * 32, {})
    anna.stop_job(VIEW, "1" * 32)
    anna.start_job(VIEW, "5" * 32, {})


def test_a_viewer_sees_what_is_under_way_and_ends_nothing(acting):
    acting(ANNA).start_job(VIEW, KEY, {})
    assert acting(LOOKER).start_job(VIEW, KEY, {}).status == "waiting"
    for other in (LOOKER, BEN):
        acting(other).release(VIEW, KEY)
        with pytest.raises(AccessError):
            acting(other).stop_job(VIEW, KEY)
    assert queue.look(VIEW, KEY).status == "waiting"
    acting(ANNA).release(VIEW, KEY)
    assert queue.look(VIEW, KEY).status == "none"


def test_uploads_of_one_visitor_are_counted(acting, store):
    table = b"sentence,label\n" + b"The cat sleeps all day.,1\n" * 30_000

    def keep(visitor: Visitor, number: int, limit: int = 2) -> Path:
        return acting(visitor, upload_mb=limit).keep_upload({"train": ("t.csv", table + b"x,%d\n" % number)})

    uploads = [keep(ANNA, number) for number in (1, 2)]
    assert keep(ANNA, 1) == uploads[0], "the same content is kept once"
    with pytest.raises(DataError, match=r"kept for one visitor: 3 \(at most 2; .* ISOVIZ_QUOTA_UPLOAD_MB\)"):
        keep(ANNA, 3)
    assert sorted(path.name for path in (store.folder / "uploads").iterdir()) == sorted(path.name for path in uploads)
    keep(BEN, 3)
    keep(OPERATOR, 4, limit=0)
    from isoviz.tasks import own

    assert own.guess(uploads[0], OwnTask(text="sentence", label="label")).kind == "classification"


@pytest.fixture
def vectors_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: a guarded one takes seconds to start."""
    monkeypatch.setattr(guarded, "call", lambda target, arguments, *_, **__: intake.import_file(arguments["request"]))


def array_file(seed: int, rows: int = 1_500) -> dict[str, tuple[str, bytes]]:
    """0.6 MB of vectors."""
    buffer = io.BytesIO()
    np.save(buffer, np.random.default_rng(seed).normal(size=(rows, 100)).astype(np.float32))
    return {"file": ("mine.npy", buffer.getvalue())}


@pytest.mark.usefixtures("vectors_read_here")
def test_kept_vectors_of_one_visitor_are_counted_until_they_are_deleted(acting):
    order = ImportRequest("vectors")
    anna = acting(ANNA, upload_mb=1)
    first = anna.keep_vectors(order, array_file(1))
    assert anna.keep_vectors(order, array_file(1)) == first, "the same content counts once"
    with pytest.raises(DataError, match=r"kept for one visitor: 2 \(at most 1; .* ISOVIZ_QUOTA_UPLOAD_MB\)"):
        anna.keep_vectors(order, array_file(2))
    bens = acting(BEN, upload_mb=1).keep_vectors(order, array_file(2))
    with pytest.raises(DataError, match="ISOVIZ_QUOTA_UPLOAD_MB"):
        anna.keep_vectors(order, array_file(2))
    assert vectors.load(bens.key).n == 1_500, "what someone else keeps stays"
    with pytest.raises(AccessError, match="Someone else loaded this data"):
        anna.forget_vectors(bens.key)
    anna.keep_vectors(order, array_file(1))
    acting(BEN, upload_mb=9).keep_vectors(order, array_file(1))
    anna.forget_vectors(first.key)
    assert vectors.load(first.key).n == 1_500, "Ben keeps it too"
    acting(BEN).forget_vectors(first.key)
    with pytest.raises(KeyError):
        vectors.load(first.key)
    anna.keep_vectors(order, array_file(1))
    acting(OPERATOR, upload_mb=0).keep_vectors(order, array_file(3))
    anna.forget_vectors(first.key)
    assert anna.keep_vectors(order, array_file(4)).n == 1_500


def test_an_archive_that_expands_beyond_the_quota_is_not_kept(acting, vectors_read_here):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, np.zeros((6_000, 100), dtype=np.float32))
    with pytest.raises(DataError, match="kept for one visitor: 3"):
        acting(ANNA, upload_mb=1).keep_vectors(ImportRequest("vectors"), {"file": ("mine.npz", buffer.getvalue())})
    assert not list((vectors.STORE.root / "results").glob("*"))


def test_a_deleted_set_takes_its_views_encodings_and_chains_along(acting):
    rng = np.random.default_rng(0)
    texts = vectors.keep(vectors.from_texts([f"text {row}" for row in range(40)]))
    encoded = vectors.from_points(rng.normal(size=(40, 4)), facts={"texts": texts})
    vectors.STORE.publish("e" * 32, *vectors.sets.stored(encoded))
    other = vectors.keep(vectors.from_points(rng.normal(size=(40, 4))))
    for index, data in enumerate((texts, "e" * 32, other)):
        results.STORE.publish(str(index) * 32, {"request": {"data": data}}, {"x": np.zeros(2)})
    engine = engine_of(other)
    engine_of("e" * 32)
    acting(OPERATOR).forget_vectors(texts)
    assert results.STORE.keys(lambda _: True) == ["2" * 32]
    assert vectors.STORE.keys(lambda _: True) == [other]
    assert engine_of(other) is engine
    with pytest.raises(KeyError):
        engine_of("e" * 32)


def test_paths_outside_the_roots_do_not_enter_runs_or_jobs(acting, store, tmp_path):
    inside, outside = tmp_path / "shared" / "data", tmp_path / "private"
    inside.mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "shared" / "link").symlink_to(outside)
    (tmp_path / "shared" / "leads out").mkdir()
    (tmp_path / "shared" / "leads out" / "train.csv").symlink_to(outside / "train.csv")
    (inside / "backup").symlink_to(outside)  # nothing reads it
    bad = [str(outside), str(tmp_path / "nowhere"), str(tmp_path / "shared" / "link"), f"{inside}/../../private"]
    bad.append(str(tmp_path / "shared" / "leads out"))
    for visitor in (ANNA, OPERATOR):
        service = acting(visitor)
        for path in bad:
            with pytest.raises(
                DataError, match="outside .*shared cannot be read from the browser; ask the operator to"
            ):
                service.launch([RunConfig(data=path)])
            with pytest.raises(ModelError, match="cannot be read from the browser"):
                service.launch([RunConfig(model=path)])
            with pytest.raises(InputError, match="cannot be read from the browser"):
                service.start_view(ViewRequest("demo/tiny-bert", "glue/cola", path), KEY)
            with pytest.raises(InputError, match="cannot be read from the browser"):
                service.start_view(ViewRequest(path, "demo/sentiment"), KEY)
    assert store.list() == [] and queue.look(VIEW, KEY).status == "none"
    (tmp_path / "shared" / "near").symlink_to(inside)
    (tmp_path / "shared" / "model").mkdir()
    model = str(tmp_path / "shared" / "model")
    (run,) = acting(ANNA).launch([RunConfig(data=str(tmp_path / "shared" / "near"), model=model)])
    assert store.get(run).config.data == str(inside), "the link may be another one tomorrow"
    assert acting(ANNA).launch([RunConfig(data=str(store.folder / "uploads" / "0"))])
    acting(ANNA).start_view(ViewRequest("run:abc", "glue/cola", str(tmp_path / "shared" / "near")), KEY)
    (entry,) = queue._entries.values()
    assert entry.request["data"] == str(inside) and entry.visitor == "anna"


def test_a_hub_id_that_is_also_a_folder_here_is_not_read(acting, store, tmp_path, monkeypatch):
    (tmp_path / "org" / "private").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for attempt in (
        lambda: acting(ANNA).launch([RunConfig(model="org/private")]),
        lambda: acting(OPERATOR).start_view(ViewRequest("org/private", "demo/sentiment"), KEY),
    ):
        with pytest.raises(ModelError, match="'org/private' is also a folder on this server"):
            attempt()
    (run,) = acting(ANNA).launch([RunConfig(model="org/other")])
    (tmp_path / "org" / "other").mkdir()  # on the machine of a worker
    ended = execute(store, run, train=lambda *_: pytest.fail("it trains"))
    assert ended.error is not None and "is also a folder" in ended.error["message"]


def test_a_runner_does_not_resubmit_what_they_could_not_name(acting, store, tmp_path):
    private = RunConfig(data=str(tmp_path / "private"))
    (from_the_command_line,) = store.create([private])
    (run,) = store.create([private], visitor="anna")  # launched when the roots were wider
    store.request_stop(run)
    with pytest.raises(DataError, match="cannot be read from the browser"):
        acting(ANNA).run_again(from_the_command_line)
    with pytest.raises(DataError, match="cannot be read from the browser"):
        acting(ANNA).resume(run)
    assert store.get(run).status == "stopped"
    assert store.get(acting(OPERATOR).run_again(from_the_command_line)).config == private


@pytest.mark.parametrize("name", ["run_again", "stop", "resume", "delete", "rename", "tag", "note"])
def test_a_viewer_does_not_learn_whether_a_run_exists(name, acting):
    with pytest.raises(AccessError):
        WRITES[name](acting(LOOKER), "no-such-run")
