"""Uploads are stored by content and checked first; a bad file leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isoviz import tasks
from isoviz.errors import DataError, InputError
from isoviz.operations.access import uploads
from isoviz.vectors.intake import ImportRequest
from tests.tables.samples import through_file

TRAIN = b"sentence,label\nThe cat sleeps.,1\nCat the sleep.,0\n"
CHECK = b"sentence,label\nThe dog runs.,1\nDog run the.,0\n"


def save(folder: Path, train: bytes = TRAIN, name: str = "my data.CSV") -> Path:
    return uploads.save(folder, {"train": (name, train), "validation": ("v.csv", CHECK)}, tasks.get("glue/cola"))


def test_same_content_gives_the_same_folder(tmp_path):
    first = save(tmp_path)
    assert save(tmp_path, name="other.csv") == first
    assert first.parent == tmp_path / "uploads"
    assert sorted(path.name for path in first.iterdir()) == ["train.csv", "validation.csv"]
    assert (first / "train.csv").read_bytes() == TRAIN
    assert save(tmp_path, TRAIN + b"A bird sings.,1\n") != first


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"text,label\na,1\nb,0\n", "lacks the column sentence"),
        (b"sentence,label\na,1\nb,1\n", "one class only"),
        (b"sentence,label\n,1\nb,0\n", "empty 'sentence'"),
        ("sentence,label\nGrün,1\nb,0\n".encode("latin-1"), "not UTF-8"),
    ],
)
def test_bad_files_are_reported_in_one_line_and_not_kept(tmp_path, content, message):
    with pytest.raises(DataError) as caught:
        save(tmp_path, content)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert list((tmp_path / "uploads").iterdir()) == []


def test_a_name_never_leads_out_of_the_folder(tmp_path):
    saved = save(tmp_path, name="../../evil.csv")
    assert saved.is_relative_to(tmp_path / "uploads")
    assert not list(tmp_path.parent.glob("evil*"))


def test_own_files_are_kept_with_or_without_a_validation(tmp_path):
    odd = b"Was,Laune\nGut war es.,froh\n"
    alone = uploads.save(tmp_path, {"train": ("a.CSV", odd)})
    assert [path.name for path in alone.iterdir()] == ["train.csv"]
    both = uploads.save(tmp_path, {"train": ("a.csv", odd), "validation": ("b.csv", odd)})
    assert sorted(path.name for path in both.iterdir()) == ["train.csv", "validation.csv"]
    assert uploads.save(tmp_path, {"train": ("c.csv", odd)}) == alone


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train": ("a.csv", b"")}, "is empty"),
        ({"train": ("a.csv", b"Was,Laune\n")}, "has no rows"),
        ({"train": ("a.exe", b"MZ")}, r"ends in '.exe' \(allowed: .parquet"),
        ({"train": ("a.parquet", b"PAR1")}, "cannot be read as Parquet"),
        ({"validation": ("a.csv", b"a,b\n1,2\n")}, "train file is missing"),
    ],
)
def test_own_files_that_are_no_tables_are_not_kept(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        uploads.save(tmp_path, files)
    assert not (tmp_path / "uploads").exists() or list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.parametrize("name", ["mine.npy", "C:\\data\\mine.npy", "../../mine.npy"])
def test_an_error_names_an_uploaded_file_and_never_the_servers_path(tmp_path, name):
    with pytest.raises(InputError, match=r"^vectors: 'mine\.npy' is not a NumPy array: its content is text$"):
        uploads.save_vectors(tmp_path, ImportRequest("vectors"), {"file": (name, b"0.1 0.2\n0.3 0.4\n")})
    with pytest.raises(InputError, match=r"^labels: 'mine\.npy' is a NumPy array") as refused:
        content = through_file(".npy", lambda path: np.save(path, np.arange(6.0)))
        files = {"file": ("a.csv", b"x,y\n1,2\n2,3\n4,9\n"), "beside": (name, content)}
        uploads.save_vectors(tmp_path, ImportRequest("vectors"), files)
    assert str(tmp_path) not in str(refused.value)
