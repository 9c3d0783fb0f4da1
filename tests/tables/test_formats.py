"""What every format promises; a new one is found and needs a sample in `samples.py`."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.tables import catalogue
from isoviz.vectors import columns as table_columns
from isoviz.vectors import reading
from tests.tables.samples import BYTES, POINTS, SAMPLES, WORDS

READ = [slug for slug, one in catalogue.catalogue().items() if one.holds in ("array", "table", "vectors")]
SMALL = ("bvecs", "ivecs", "u8bin", "i8bin")


def _written(folder: Path, slug: str, name: str = "") -> Path:
    path = folder / (name or f"a{catalogue.catalogue()[slug].endings[0]}")
    path.write_bytes(SAMPLES[slug]())
    return path


@pytest.mark.parametrize("slug", READ)
def test_each_format_gives_its_vectors_whatever_the_case_of_its_ending(slug: str, tmp_path: Path) -> None:
    expected = BYTES if slug in SMALL else POINTS
    for name in ("", f"A{catalogue.catalogue()[slug].endings[-1].upper()}"):
        path = _written(tmp_path, slug, name)
        read = vectors.read(path)
        np.testing.assert_allclose(read.points, expected, rtol=1e-6)
        np.testing.assert_allclose(reading.array(str(path)), expected, rtol=1e-6)
        if "id" in read.columns:
            assert read.columns["id"].tolist() == WORDS
        assert catalogue.identified(path).slug == slug


@pytest.mark.parametrize("slug", READ)
def test_content_beats_the_ending(slug: str, tmp_path: Path) -> None:
    """A file with another format's ending is read as what it is, or refused for what it is not; never as something else."""
    for ending in (".npy", ".parquet", ".safetensors", ".pt", ".weights", ""):
        path = _written(tmp_path, slug, f"a{ending}")
        try:
            found = catalogue.identified(path).slug
        except InputError as error:
            assert "its content is" in str(error) or "ends in" in str(error)
        else:
            assert found == slug


@pytest.mark.parametrize("slug", READ)
def test_a_damaged_file_is_one_line(slug: str, tmp_path: Path) -> None:
    whole = SAMPLES[slug]()
    for content in (b"", whole[: len(whole) // 2], whole[:9], whole[:-3], whole[:7] + b"\0\xff" * 4 + whole[15:]):
        path = tmp_path / f"a{catalogue.catalogue()[slug].endings[0]}"
        path.write_bytes(content)
        try:
            read = reading.array(str(path))
        except InputError as error:
            assert str(error).startswith("vectors: ") and "\n" not in str(error)
        else:
            assert content and read.ndim == 2


@pytest.mark.parametrize("slug", [slug for slug in READ if catalogue.catalogue()[slug].batches is not None])
def test_pieces_are_the_whole(slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _written(tmp_path, slug)
    whole = reading.array(str(path))
    monkeypatch.setattr(table_columns, "STREAM_ABOVE", 0)
    monkeypatch.setattr(table_columns, "_BATCH", 60)
    monkeypatch.setattr("isoviz.tables.kinds.word_vectors.BLOCK", 90)
    streamed = reading.array(str(path))
    assert isinstance(streamed, np.memmap)
    np.testing.assert_array_equal(streamed, whole)


@pytest.mark.parametrize("slug", READ)
def test_text_formats_may_be_gzipped(slug: str, tmp_path: Path) -> None:
    format = catalogue.catalogue()[slug]
    path = tmp_path / f"a{format.endings[0]}.gz"
    path.write_bytes(gzip.compress(SAMPLES[slug]()))
    if format.compressible:
        np.testing.assert_allclose(vectors.read(path).points, POINTS, rtol=1e-6)
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError, match="cannot be unpacked"):
            vectors.read(path)
    else:
        with pytest.raises(InputError, match=r"is gzipped; unpack it|its content is|ends in"):
            vectors.read(path)


def test_a_gzipped_file_that_is_a_thousand_times_larger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 10**6))
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        vectors.read(tmp_path / "a.csv.gz")


@pytest.mark.parametrize(
    "name, content, advice",
    [
        ("a.pkl", b"\x80\x04\x95\x01.", "is a pickle, which is not read; opening one runs its code"),
        ("a.npy", b"\x80\x04\x95\x01.", "is a pickle"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", "is a workbook .*save the sheet as CSV"),
        ("model.bin", b"\xba\x16O/" + b"\0" * 40, "is a fastText model"),
        ("a.foo", b"\0\1", "ends in '.foo' \\(allowed: .npy, .npz"),
    ],
)
def test_what_is_never_read_is_refused_with_advice(name: str, content: bytes, advice: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=advice):
        vectors.read(tmp_path / name)


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    for slug, extra in {
        "hdf5": r"h5py: pip install 'isoviz-embeddings\[formats\]'",
        "torch": r"torch: pip install 'isoviz-embeddings\[train\]'",
    }.items():
        with pytest.raises(InputError, match=extra):
            vectors.read(_written(tmp_path, slug))
