"""The real huggingface_hub client against a small hub on loopback: found, not found, gated, broken off, offline."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

from isoviz.__main__ import main
from isoviz.errors import ModelError
from isoviz.hub import forget_answers
from isoviz.models import hub, sentences, sources
from isoviz.runs.store import Store
from tests.hub_client import looking_at
from tests.loopback_hub import Repository, serving
from tests.models import sentence_folders
from tests.tiny import embed

NAME = "acme/tiny"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A hub with nothing on it, and the client looking at it with an empty cache."""
    with serving() as served, looking_at(served.endpoint, tmp_path / "cache", monkeypatch):
        yield served


@pytest.fixture
def published(server, tiny_models):
    """The hub with one BERT and unneeded files; returns the commit."""
    folder = tiny_models("bert")
    commit = server.add(NAME, folder)
    files = server.repositories[f"models/{NAME}"].commits[commit]
    files |= {"pytorch_model.bin": b"x" * 9000, "README.md": b"# x", "onnx/model.onnx": b"y" * 9000, "run.py": b"1/0"}
    return commit


@pytest.fixture
def nothing_listens():
    """An address where no connection is taken, and which no one else gets meanwhile."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def only_line(capsys, *words) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    (line,) = err.strip().splitlines()
    assert out == "" and line.startswith("isoviz: --model: ")
    return line


def test_found_fetched_and_pinned(server, published, tiny_models):
    source = sources.resolve(NAME)
    assert (source.kind, source.revision, source.fingerprint) == ("hub", published, "unfetched")
    assert server.downloads() == ["config.json"]  # nothing else before it is wanted
    progress = []
    fetched = sources.fetch(source, lambda *what: progress.append(what))
    local = sources.resolve(str(tiny_models("bert")))
    assert (fetched.kind, fetched.revision, fetched.fingerprint) == ("cached", published, local.fingerprint)
    # no pickle, no code, no page
    assert set(server.downloads()) == {path.name for path in Path(local.location).iterdir()}
    assert progress[0] == (0, source.size, "downloading the model") and progress[-1][:2] == (source.size, source.size)
    assert source.size == fetched.size == local.size > 0
    before = len(server.asked)
    assert sources.resolve(NAME) == fetched and sources.fetch(fetched) is fetched
    assert len(server.asked) == before  # the cache is taken without asking
    assert (embed(fetched, [["w1 w2"]]) == embed(local, [["w1 w2"]])).all()


def test_a_revision_is_found_and_cached_separately(server, published, tiny_models):
    other = server.add(NAME, tiny_models("roberta"), branch="refs/pr/1")
    fetched = sources.fetch(sources.resolve(f"{NAME}@refs/pr/1"))
    assert (fetched.revision, fetched.name) == (other, f"{NAME}@refs/pr/1")
    assert sources.fetch(sources.resolve(f"{NAME}@{published}")).revision == published
    assert sources.resolve(NAME).revision == published
    assert sorted(hub.cached()) == [NAME, f"{NAME}@refs/pr/1"]
    with pytest.raises(ModelError, match="has no such revision"):
        sources.resolve(f"{NAME}@nowhere")


def test_modules_that_another_library_left_out_are_fetched(server, tiny_models, tmp_path):
    folder = sentence_folders.make(tmp_path / "model", tiny_models("bert"), dense=4)
    commit = server.add("org/sentences", folder)
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        hf_hub_download("org/sentences", name)  # as for a bare transformer
    source = sources.resolve("org/sentences")
    assert (source.kind, source.revision) == ("hub", commit), "read as it lies there, its Dense layer would be left out"
    fetched = sources.fetch(source)
    assert sentences.describe(Path(fetched.location)).names == ("Transformer", "Pooling", "Dense")
    assert sources.resolve("org/sentences").kind == "cached"


def test_a_bare_transformer_is_asked_for_modules_once(server, published):
    sources.fetch(sources.resolve(NAME))
    server.asked.clear()
    forget_answers()
    assert sources.resolve(NAME).kind == "cached"
    assert not [line for line in server.asked if "modules.json" in line]


@pytest.mark.parametrize("verb", ["measure", "train"])
def test_not_found_and_gated_end_in_one_line(server, tiny_models, capsys, verb):
    assert "'acme/nothing' is not on the hub" in only_line(capsys, verb, "--model", "acme/nothing")
    server.add("acme/gated", tiny_models("bert"), gated=True)
    line = only_line(capsys, verb, "--model", "acme/gated")
    assert "'acme/gated' is gated: accept its terms" in line and "hf auth login" in line


def test_a_broken_download_is_reported_and_the_next_one_finishes(server, published, capsys, cola):
    server.cut["model.safetensors"] = 2000
    server.down_after_cut = True
    task = ("--task", "glue/cola", "--data", cola)
    line = only_line(capsys, "measure", "--model", NAME, *task)
    assert "the download stopped after" in line and "try again" in line
    server.down = server.down_after_cut = False
    server.cut["model.safetensors"] = 2000
    server.down_after_cut = True
    assert "stopped after" in only_line(capsys, "train", "--model", NAME, *task)
    assert Store(None).list() == []  # no run is made of it
    server.down = False
    before = len(server.downloads())
    assert main(["measure", "--model", NAME, *map(str, task), "--pooling", "mean", "--json"]) == 0
    again = server.downloads()[before:]
    assert "model.safetensors" in again and "config.json" not in again  # complete files are not fetched twice
    assert sources.resolve(NAME).kind == "cached"


def test_half_a_model_is_no_model_and_is_finished_when_it_can_be(server, published, monkeypatch, tmp_path):
    sources.resolve(NAME)  # its configuration is in the cache now
    assert hub.cached() == []
    with (
        looking_at(server.endpoint, tmp_path / "cache", monkeypatch, offline=True),
        pytest.raises(
            ModelError, match=r"hub cache, but has no model.safetensors \(its weights are missing\), and the hub"
        ),
    ):
        sources.resolve(NAME)
    assert sources.fetch(sources.resolve(NAME)).kind == "cached"
    with looking_at(server.endpoint, tmp_path / "cache", monkeypatch, offline=True):
        assert sources.resolve(NAME).revision == published


def test_offline_is_reported_with_advice(tmp_path, monkeypatch, capsys, nothing_listens):
    with looking_at(nothing_listens, tmp_path / "cache", monkeypatch):
        line = only_line(capsys, "measure", "--model", "acme/tiny")
        assert "is not on this machine and the hub cannot be reached (127.0.0.1:" in line
        assert "use a bundled model (demo/tiny-bert" in line
        assert "HF_HUB_OFFLINE" not in line
    with looking_at("http://127.0.0.1:9", tmp_path / "cache", monkeypatch, offline=True):
        assert "HF_HUB_OFFLINE is set" in only_line(capsys, "train", "--model", "acme/tiny")


def test_code_that_comes_with_a_model_is_refused_and_pickles_too(server, tiny_models, published):
    files = dict(server.repositories[f"models/{NAME}"].commits[published])
    config = {"model_type": "acme_net", "auto_map": {"AutoModel": "modeling_acme.AcmeModel"}}
    odd = {
        "acme/code": ({**files, "config.json": json.dumps(config).encode()}, "trust_remote_code stays off"),
        "acme/pickle": ({n: c for n, c in files.items() if n != "model.safetensors"}, "pickled weights are not read"),
        "acme/page": ({"README.md": b"# x"}, "has no config.json"),
        "acme/part": (
            {**{n: c for n, c in files.items() if n != "model.safetensors"}, "model-00001-of-00002.safetensors": b"x"},
            r"lacks some of its weights \(no model-00002-of-00002",
        ),
    }
    for name, (content, message) in odd.items():
        server.repositories[f"models/{name}"] = _repository(content)
        with pytest.raises(ModelError, match=message):
            sources.resolve(name)
    # A family that transformers has needs no code, whatever else the repository offers.
    native = json.dumps({**json.loads(files["config.json"]), "auto_map": config["auto_map"]}).encode()
    server.repositories["acme/native"] = server.repositories["models/acme/native"] = _repository(
        {**files, "config.json": native}
    )
    assert sources.resolve("acme/native").kind == "hub"


def _repository(content):
    return Repository("models", {"0" * 40: content}, {"main": "0" * 40})


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("gpt2", ("gpt2", None)),
        ("a/b@refs/pr/1", ("a/b", "refs/pr/1")),
        ("a/b@v1.0", ("a/b", "v1.0")),
        ("a/b@", None),
        ("a/b@../x", None),
        ("a/../b", None),
        ("a/b/c", None),
        ("what?*", None),
        ("a/b.git", None),
        ("a/b-", None),
        ("a./b", None),
    ],
)
def test_names(text, parsed):
    assert hub.parse(text) == parsed
