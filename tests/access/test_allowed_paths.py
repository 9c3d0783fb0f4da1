"""A serving process reads only below the allowed folders, and no refusal reveals what exists elsewhere."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from isoviz import allowed_paths, tasks
from isoviz.allowed_paths import Roots
from isoviz.errors import InputError, ModelError
from isoviz.models import sources
from isoviz.runs import planning
from isoviz.tasks import files, own
from isoviz.tasks.own import OwnTask

TABLE = "text,label\nfine,1\nbad,0\n"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A readable folder beside a private one."""
    for name in ("shared", "private"):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "data" / "train.csv").write_text(TABLE)
    return tmp_path / "shared"


@pytest.fixture
def confined(shared: Path) -> None:
    """Confines this process to the shared folder."""
    allowed_paths.restrict_to(lambda: Roots((shared,)))


def refusal(look: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        look()
    return str(caught.value)


def test_inside_is_read_by_any_spelling(shared, confined, monkeypatch):
    (shared / "link").symlink_to(shared / "data")
    monkeypatch.setenv("HOME", str(shared))
    monkeypatch.chdir(shared)
    for text in (str(shared / "data"), "data", "./data", "~/data", f"{shared}/link/../data", f"{shared}//data/"):
        assert allowed_paths.resolve(text, "data") == shared / "data", text
    assert allowed_paths.resolve(shared / "link", "data") == shared / "data"
    assert own.preview(shared / "data").columns == ("text", "label")


def test_outside_is_refused_the_same_way_whether_it_exists_or_not(shared, confined, tmp_path):
    (shared / "out").symlink_to(tmp_path / "private")
    (shared / "dangling").symlink_to(tmp_path / "nowhere")
    (shared / "circle").symlink_to(shared / "circle")
    (tmp_path / "shared-too").mkdir()  # begins with the same letters
    texts = [
        str(tmp_path / "private"),
        str(tmp_path / "private" / "data" / "train.csv"),
        str(tmp_path / "nowhere"),
        str(tmp_path / "shared-too"),
        str(shared / ".." / "private"),
        str(shared / "out" / "data"),
        str(shared / "dangling"),
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "~root",
        "~nosuchuser/x",
        "../..",
        "/",
    ]

    def launched(text: str) -> object:
        return planning.expand(["demo/tiny-bert"], ["glue/cola"], [("baseline", {})], [0], data=text)

    words = {refusal(functools.partial(look, text)) for text in texts for look in (own.preview, launched)}
    assert words == {
        f"data: folders outside {shared} cannot be read from the browser; ask the operator to add yours to ISOVIZ_ROOTS"
    }
    assert "not a file or folder" in refusal(lambda: own.preview(shared / "missing"))


def test_a_link_to_a_file_elsewhere_is_not_followed(shared, confined, tmp_path):
    mixed = shared / "mixed"
    mixed.mkdir()
    (mixed / "train.csv").symlink_to(tmp_path / "private" / "data" / "train.csv")
    (mixed / "validation.csv").write_text(TABLE)
    columns = OwnTask(text="text", label="label")
    looks = [
        lambda: own.preview(mixed),
        lambda: own.preview(mixed / "train.csv"),
        lambda: own.guess(mixed, columns),
        lambda: files.tabular(mixed / "train.csv"),
        lambda: files.read([mixed / "train.csv"], {"text": "text"}),
        lambda: tasks.load(tasks.get("glue/cola"), mixed),
    ]
    assert all("cannot be read from the browser" in refusal(look) for look in looks)


def test_models(shared, confined, tmp_path, tiny_models):
    (shared / "model").mkdir()
    for path in tiny_models("bert").iterdir():
        (shared / "model" / path.name).write_bytes(path.read_bytes())
    assert sources.resolve(str(shared / "model")).kind == "local"
    assert sources.resolve("demo/tiny-bert").kind == "bundled"
    for text in (str(tiny_models("bert")), str(tmp_path / "nowhere"), "~root", "./model", "../x", "a/b/c"):
        with pytest.raises(ModelError, match="cannot be read from the browser"):
            sources.resolve(text)
    with allowed_paths.unrestricted():
        assert sources.resolve(str(tiny_models("bert"))).kind == "local"
    weights = shared / "model" / "model.safetensors"
    weights.unlink()
    weights.symlink_to(tiny_models("bert") / "model.safetensors")
    with pytest.raises(ModelError, match="cannot be read from the browser"):
        sources.resolve(str(shared / "model"))


def test_a_hub_id_is_no_folder_outside(shared, confined, tmp_path, monkeypatch):
    """`org/name` may be a folder beside the server's files; its existence must not be revealed."""
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    existing, absent = (refusal(lambda name=name: sources.resolve(name)) for name in ("org/name", "org/none"))  # type: ignore[misc]
    assert existing.replace("org/name", "org/none") == absent


def test_without_roots_it_says_how_to_set_them():
    allowed_paths.restrict_to(lambda: Roots(()))
    assert refusal(lambda: own.preview(os.getcwd())) == (
        "data: folders on the server cannot be read from the browser; ask the operator to list them in ISOVIZ_ROOTS"
    )
