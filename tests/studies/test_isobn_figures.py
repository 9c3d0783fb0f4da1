"""IsoBN's figures: their values against plain loops, and the clouds against the library's model, row by row."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from isoviz import posthoc, studies, tasks
from isoviz.errors import DataError, InputError, ModelError
from isoviz.models import checkpoint, sources
from isoviz.studies import isobn_figures
from isoviz.studies.inputs import Inputs
from isoviz.studies.isobn_clouds import measure
from isoviz.studies.isobn_figures import (
    blocks_fit_better,
    dimensions_table,
    ev_table,
    explained,
    spreads,
)
from isoviz.studies.result import Result, Table, provenance
from tests import tiny

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")

ROWS = 40
FORMS = ("none", "BN", "IsoBN")
NAME = "toy/bert"


def silent(share: float, activity: str) -> None:
    assert 0 <= share <= 1
    assert activity


@pytest.fixture(scope="module")
def points():
    """Two dimensions that go together, one against them, one on its own, one far smaller, one constant."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 6)) * [3.0, 1.0, 2.0, 0.5, 1e-7, 0.0] + [0.0, 5.0, -2.0, 1.0, 0.0, 0.25]
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] -= 0.6 * x[:, 0]
    return x


@pytest.fixture(scope="module")
def cloud(points):
    return measure(points, NAME, tasks.get("glue/mrpc"), "[CLS] state")


def strengths(points):
    """|ρ| of all pairs; a constant dimension is uncorrelated."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(np.corrcoef(points.T)))[np.triu_indices(6, 1)]


def shares(x) -> list[float]:
    """EV_1, EV_2, … from the singular values of the centred matrix."""
    squares = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2
    return [squares[: k + 1].sum() / squares.sum() for k in range(len(squares))]


def test_a_cloud_has_the_numbers_of_its_points(points, cloud):
    np.testing.assert_allclose(cloud.sigma, points.std(axis=0), rtol=1e-9, atol=1e-12)
    expected = np.sort(strengths(points))
    np.testing.assert_allclose(np.sort(cloud.correlation[np.triu_indices(6, 1)]), expected, atol=1e-9)
    # the two that go together most are neighbours, the constant one is last
    assert max(np.diagonal(cloud.correlation, 1)) == pytest.approx(expected[-1], abs=1e-9)
    assert not cloud.correlation[-1, :-1].any()
    forms = {
        "none": points,
        "BN": (points - points.mean(axis=0)) / np.sqrt(points.var(axis=0) + 1e-5),
        "IsoBN": posthoc.isobn(beta=1.0).fit_transform(points),
    }
    assert list(cloud.spectra) == list(forms)
    for form, ev in cloud.spectra.items():
        np.testing.assert_allclose(ev, shares(forms[form]), rtol=1e-8)
    assert (cloud.n, cloud.d, cloud.tiny) == (60, 6, 2)


def test_the_bins_hold_every_dimension(cloud):
    (panel,) = spreads([cloud], 1).panels
    bars, zero = panel.traces
    assert panel.plot["layout"]["xaxis"]["range"][1] == 1  # the largest σ, about 3, is in the decade up to 10
    assert len(bars["x"]) == 11 * 5
    assert zero["y"] == [pytest.approx(100 / 6)]
    step = 10**0.1  # half a bin
    for middle, percent in zip(np.power(10.0, bars["x"]), bars["y"], strict=True):
        inside = sum(middle / step <= sigma < middle * step for sigma in cloud.sigma)
        assert percent == pytest.approx(100 * inside / 6)


def test_the_tables_have_the_numbers_of_their_clouds(points, cloud):
    (row,) = dimensions_table([cloud]).rows
    named = dict(zip(dimensions_table([cloud]).header, row, strict=True))
    pairs = strengths(points)
    assert named["smallest σ > 0"] == min(sigma for sigma in cloud.sigma if sigma > 0)
    assert (named["n"], named["d"], named["σ = 0"], named["tiny σ"]) == (60, 6, 1, 2)
    assert named["mean |ρ|"] == pytest.approx(pairs.mean())
    assert named["|ρ| ≥ 0.5, % of pairs"] == pytest.approx(100 * (pairs >= 0.5).mean())
    table = ev_table([cloud])
    assert table.rows[2][3:] == ["IsoBN", *cloud.spectra["IsoBN"][:3], 0.37, 0.68, 0.77]
    assert table.notes == ["Printed: IsoBN, Table 2, bert-base-cased, another encoder than toy/bert."]


def test_a_cloud_without_variance_has_no_explained_variance():
    with pytest.warns(UserWarning):
        still = measure(np.full((5, 3), 0.25), NAME, tasks.get("glue/mrpc"), "[CLS] state")
    assert still.spectra == {}
    assert explained([still], 1).panels[0].traces == []
    assert spreads([still], 1).panels[0].traces[1]["y"] == [100.0]
    assert dimensions_table([still]).rows[0][5] is None
    assert ev_table([still]).rows == []


@pytest.fixture(scope="module")
def run(tiny_models, tmp_path_factory):
    """Two tasks from files through a tiny BERT, and the inputs."""
    root = tmp_path_factory.mktemp("data")
    folders = {
        "glue/cola": tiny.write("classification", root / "one", train=ROWS),
        "glue/stsb": tiny.write("regression", root / "two", train=ROWS + 8),
    }
    inputs = Inputs.read(
        [f"{NAME}={tiny_models('bert')}"], list(folders), [f"{slug}={folder}" for slug, folder in folders.items()]
    )
    return isobn_figures.FIGURES.run("full", silent, inputs), folders


def test_the_clouds_are_the_models_own(run, tiny_models):
    """Each row alone, no padding, through the library's model; [CLS] state and pooler output."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    result, folders = run
    folder = tiny_models("bert")
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    dimensions, ev = result.tables
    rows = {(row[0], row[2]): row for row in dimensions.rows}
    spectra = {(row[0], row[2]): row[4:7] for row in ev.rows if row[3] == "none"}
    assert list(rows) == [("CoLA", "[CLS] state"), ("STS-B", "[CLS] state"), ("CoLA", "pooler output"),
                          ("STS-B", "pooler output")]  # fmt: skip
    for slug, data in folders.items():
        task = tasks.get(slug)
        frame = tasks.load(task, data).train
        states, pooled = [], []
        for texts in frame[list(task.inputs)].itertuples(index=False):
            with torch.no_grad():
                out = model(**tokenizer(*texts, return_tensors="pt"))
            states.append(out.last_hidden_state[0, 0].double().numpy())
            pooled.append(out.pooler_output[0].double().numpy())
        for tensor, reference in (("[CLS] state", np.array(states)), ("pooler output", np.array(pooled))):
            row = rows[task.title, tensor]
            assert row[3:5] == [len(frame), 16]
            np.testing.assert_allclose(row[5:8], np.quantile(reference.std(axis=0), [0, 0.5, 1]), rtol=1e-4)
            np.testing.assert_allclose(spectra[task.title, tensor], shares(reference)[:3], rtol=1e-4)


def test_the_result_is_complete_and_names_no_path(run, tiny_models):
    result, folders = run
    assert [(figure.name, figure.place, figure.columns) for figure in result.figures] == [
        ("sigma", "Figure 1", 2),
        ("correlation", "Figure 2", 2),
        ("ev", "Figure 4", 2),
    ]
    for figure in result.figures:
        assert [panel.title for panel in figure.panels] == [
            f"{task}, {tensor}\nbert, n = {n}, d = 16"
            for tensor in ("[CLS] state", "pooler output")
            for task, n in (("CoLA", ROWS), ("STS-B", ROWS + 8))
        ]
    text = result.model_dump_json()
    assert studies.Result.model_validate_json(text) == result
    assert str(tiny_models.root) not in text
    assert all(str(folder) not in text for folder in folders.values())
    assert "w0 " not in text  # nor any sentence
    record = result.provenance
    assert "Of the paper's tasks not in this run: MRPC, RTE." in result.notes
    assert record.inputs == ["--model", f"{NAME}=DIR", "--tasks", *folders, "--data",
                             *(f"{slug}=DIR" for slug in folders)]  # fmt: skip
    assert record.config["models"] == [{"name": NAME, "fingerprint": sources.fingerprint(tiny_models("bert"))}]
    assert [task["rows"] for task in record.config["tasks"]] == [ROWS, ROWS + 8]


def test_a_pooler_with_the_bias_of_a_new_one_is_named(run, tiny_models, tmp_path):
    from transformers import AutoModel

    assert any("toy/bert: the pooler of this checkpoint has a bias of exactly zero" in note for note in run[0].notes)
    trained = AutoModel.from_pretrained(tiny_models("bert"))
    trained.pooler.dense.bias.data[3] = -0.01
    shutil.copytree(tiny_models("bert"), tmp_path / "trained")  # with its tokenizer
    trained.save_pretrained(tmp_path / "trained")
    assert checkpoint.pooling_as_initialised(sources.resolve(str(tiny_models("bert"))))
    for source in (str(tmp_path / "trained"), str(tiny_models("roberta")), "demo/tiny-bert", "demo/tiny-bart"):
        assert checkpoint.pooling_as_initialised(sources.resolve(source)) is None


def test_an_encoder_without_a_pooler_has_its_state_only(tiny_models, tmp_path):
    data = tiny.write("classification", tmp_path / "cola", train=20)
    inputs = Inputs.read([str(tiny_models("roberta"))], ["glue/cola"], [f"glue/cola={data}"])
    result = isobn_figures.FIGURES.run("quick", silent, inputs)
    assert [len(figure.panels) for figure in result.figures] == [1, 1, 1]
    assert any("holds no pooler" in note for note in result.notes)
    assert result.published[0].what.endswith("[CLS] state")
    assert result.provenance.config["models"][0]["name"] == tiny_models("roberta").name  # its folder's name


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        ({"models": ["{bart}"], "tasks": ["demo/paraphrase"]}, ModelError, "reads the first token of an encoder"),
        ({"tasks": ["demo/qa"]}, InputError, "tasks: 'demo/qa' is not about a text"),
        ({"tasks": ["glue/mnlp"]}, InputError, "did you mean 'glue/mnli'"),
        ({"data": ["glue/cola=x"]}, InputError, "data: 'glue/cola' is not among the tasks of this run"),
        ({"tasks": ["glue/cola"], "data": ["glue/cola=nowhere"]}, DataError, "'nowhere' is not a folder"),
        ({"models": ["./nowhere"]}, ModelError, "no such model or directory './nowhere'"),
    ],
)
def test_unsuitable_inputs_are_refused(words, kind, message, tiny_models):
    filled = {name: [word.format(bart=tiny_models("bart")) for word in templates] for name, templates in words.items()}
    with pytest.raises(kind, match=message):
        isobn_figures.FIGURES.run("quick", silent, Inputs.read(**filled))


def with_tables(*tables: Table) -> Result:
    return Result(title="t", tables=list(tables), provenance=provenance("isobn-figures", "quick", 0, {}, [], 1.0))


@pytest.mark.parametrize(
    ("sigma", "strong", "ev", "outcome"),
    [
        ((1e-8, 1.0), 20.0, [(0.7, 0.8, 0.9), (0.6, 0.7, 0.8), (0.3, 0.5, 0.6)], "held"),
        ((0.1, 0.3), 0.1, [(0.1, 0.2, 0.3), (0.1, 0.2, 0.3), (0.2, 0.3, 0.4)], "not held"),
    ],
)
def test_claims_are_judged_by_the_tables(sigma, strong, ev, outcome):
    cloud = ["MRPC", "e", "v", 10, 4, sigma[0], 0.1, sigma[1], 0, 0, strong]
    shares = [["MRPC", "e", "v", form, *values] for form, values in zip(FORMS, ev, strict=True)]
    result = with_tables(
        Table(title="d", header=list("abcdefghijk"), rows=[cloud]),
        Table(title="ev", header=list("abcdefg"), rows=shares),
    )
    assert [claim.judge(result)[0] for claim in isobn_figures.FIGURES.claims] == [outcome] * 4
    assert ("in 3 of 3 cases" in isobn_figures.FIGURES.claims[3].judge(result)[1]) == (outcome == "held")


# ---------------------------------------------------------------------------------------------------- Figure 3


def blocks(*sizes, inside=0.9, outside=0.05):
    """|ρ| of dimensions in groups of these sizes."""
    of_group = np.repeat(range(len(sizes)), sizes)
    matrix = np.where(of_group[:, None] == of_group, inside, outside)
    np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.parametrize(("identity", "of_blocks", "outcome"), [(0.4, 0.1, "held"), (0.1, 0.2, "not held")])
def test_the_nearer_assumption_is_named(identity, of_blocks, outcome):
    rows = [["MRPC", "e", 3, 80.0, identity, of_blocks]]
    assert blocks_fit_better(with_tables(Table(title="t", header=list("abcdef"), rows=rows)))[0] == outcome


def test_figure_3_of_an_own_encoder(tiny_models, cola):
    inputs = Inputs.read([f"toy={tiny_models('bert')}"], ["glue/cola"], [f"glue/cola={cola}"])
    result = isobn_figures.FIGURE_3.run("quick", silent, inputs)
    (figure,) = result.figures
    assert [panel.traces[0]["z"]["shape"] for panel in figure.panels] == ["16, 16"] * 3
    assert figure.panels[1].title == "batch normalisation"
    assert len(result.verdicts) == 2 and result.provenance.config["tasks"][0]["rows"] == 64
