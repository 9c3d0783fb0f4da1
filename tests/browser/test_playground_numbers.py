"""The playground's numbers against `isoviz.metrics`, on the same points: its engine runs in Chromium and hands its float64 over."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from dashboard.components.playground import source
from isoviz import metrics, posthoc
from isoviz.metrics.sample import Sample
from tests.dashboard.playground_stream import normals, uniforms

RELATIVE, ABSOLUTE = 1e-9, 1e-13
COMPUTE = """({ part, draw }) => {
  const { Engine, normalised, finish } = globalThis.kinds;
  const engine = new Engine();
  const state = normalised(part);
  const found = { before: {}, after: {}, known: {}, curves: {}, sigma: {}, cells: {}, redraws: null };
  for (const step of engine.steps(state)) {
    const answer = step?.answer;
    if (!answer) continue;
    if (answer.part === "redraws") {
      found.redraws = [answer.plug[draw - 1], answer.unbiased[draw - 1]];
      if (answer.plug.length > draw) break;
    }
    Object.assign(found[answer.which] ?? {}, answer.values);
    if (answer.known) found.known = answer.known;
    if (answer.part === "truth") found.curves.known = Array.from(answer.curve);
    if (answer.part === "spectrum") found.curves[answer.which] = Array.from(answer.curve);
    if (answer.part === "dimensions") {
      found.sigma[answer.which] = Array.from(answer.sigma);
      found.cells[answer.which] = Array.from(answer.cells);
    }
  }
  const text = (numbers) => {
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    let whole = "";
    for (let at = 0; at < bytes.length; at += 32768) whole += String.fromCharCode(...bytes.subarray(at, at + 32768));
    return btoa(whole);
  };
  const cloud = engine.cloudOf(state);
  const redraw = text(engine.cloudOf(state, { draw }).points);
  const clouds = { before: text(cloud.points), known: text(cloud.known), after: null, redraw };
  if (state.transforms.length) clouds.after = text(engine.cloudOf(state, { after: true }).points);
  return { ...found, clouds, state, originals: cloud.originals };
}"""

CHAIN: list[dict[str, Any]] = [
    {"slug": "all_but_the_top", "remove": 2},
    {"slug": "isobn", "beta": 1},
    {"slug": "zca", "strength": 0.6},
]
STATES: dict[str, dict[str, Any]] = {
    "as it opens": {"transforms": [{"slug": "batch_norm"}, {"slug": "zca", "strength": 1}]},
    "two dimensions": {"d": 2, "n": 50, "spectrum": "power", "decay": 2, "transforms": [{"slug": "centring"}]},
    "everything at once": {
        "d": 48,
        "n": 400,
        "seed": 7,
        "spectrum": "exponential",
        "decay": 3,
        "shift": 0.7,
        "rogue": 5,
        "rogueScale": 4,
        "block": 8,
        "rho": 0.7,
        "rotation": 0.6,
        "tails": 5,
        "clusters": 4,
        "separation": 3,
        "scale": 0.25,
        "zeta": 0.4,
        "transforms": CHAIN,
    },
    "fewer points than dimensions": {"d": 300, "n": 60, "shift": 1, "rotation": 1, "spectrum": "power", "scale": 0.1},
    "points equally far from each other": {"d": 60, "n": 40, "transforms": [{"slug": "zca", "strength": 1}]},
    "a few more points than half the dimensions": {"d": 50, "n": 40, "block": 4, "transforms": [{"slug": "isobn"}]},
    "low rank": {"d": 40, "n": 200, "spectrum": "step", "rank": 6, "rotation": 0.3, "transforms": CHAIN[2:]},
    "copies": {"d": 12, "n": 150, "duplicates": 0.4, "clusters": 2, "transforms": CHAIN[:1]},
    "more points than pairs are formed of": {"d": 6, "n": 2300, "tails": 3, "shift": 0.2},
    "unit length": {"d": 20, "n": 150, "shift": 0.5, "rotation": 1, "transforms": [{"slug": "unit_norm"}]},
    "too few points for ten neighbours": {"d": 5, "n": 10, "tails": 3},
}


@pytest.fixture(scope="module")
def engine(chromium: Browser) -> Iterator[Page]:
    """A bare page with the playground's engine; no worker, no server."""
    page = chromium.new_page()
    page.goto("about:blank")
    shared = "globalThis.kinds = { Engine, normalised, finish, toLink, fromLink, Stream };"
    page.add_script_tag(content=f"{{{source.engine()}\n{source.classic('state')}\n{shared}}}")
    yield page
    page.close()


def read(text: str, width: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=np.float64).reshape(-1, width)


def paired(count: int) -> np.ndarray:
    """The rows that the playground forms pairs of."""
    return np.arange(count) if count <= 2000 else np.arange(2000) * count // 2000


def measured(points: np.ndarray, originals: int) -> dict[str, float]:
    """The same numbers by the public functions, on the same clouds."""
    few = points[paired(len(points))]
    i1, i2 = metrics.partition(points)
    return {
        "isoscore": metrics.isoscore(points),
        "isoscore_unbiased": metrics.isoscore_unbiased(points),
        "participation_ratio": metrics.participation_ratio(points),
        "effective_rank": metrics.effective_rank(points),
        "ev_1": metrics.explained_variance(points, k=1)[0],
        "rogue_share": metrics.rogue_share(points),
        "abs_correlation": metrics.get("abs_correlation").estimate(Sample(points)).value,
        "mean_cosine": metrics.mean_cosine(points),
        "uniformity": metrics.uniformity(few),
        "rankme": metrics.rankme(points),
        "i1": i1,
        "i2": i2,
        "twonn": metrics.twonn(points[:originals][paired(originals)]),
        "local_dimension": metrics.local_dimension(points[:originals][paired(originals)]),
        "hubness": metrics.hubness(few),
        "reciprocity": metrics.reciprocity(few),
        "alpha_req": metrics.alpha_req(points),
        "epps_pulley": metrics.epps_pulley(few),
        "massive_activation": metrics.massive_activation(few),
    }


def transformed(points: np.ndarray, steps: list[dict[str, Any]]) -> np.ndarray:
    for step in steps:
        if step["slug"] == "unit_norm":
            points = points / np.linalg.norm(points, axis=1, keepdims=True)
            continue
        parameters = {name: value for name, value in step.items() if name != "slug"}
        slug, parameters = (
            ("all_but_the_top", {"remove": 0}) if step["slug"] == "centring" else (step["slug"], parameters)
        )
        points = np.asarray(posthoc.get(slug)(**parameters).fit_transform(points))
    return points


def agree(actual: dict[str, float | None], expected: dict[str, float], without: tuple[str, ...] = ()) -> None:
    for name, value in expected.items():
        if name not in without:
            shown = np.nan if actual[name] is None else actual[name]
            np.testing.assert_allclose(shown, value, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STATES)
def test_every_number_matches_the_python_engine(engine: Page, name: str) -> None:
    result = engine.evaluate(COMPUTE, {"part": STATES[name], "draw": 3})
    state, d = result["state"], result["state"]["d"]
    points, known = read(result["clouds"]["before"], d), read(result["clouds"]["known"], d)
    assert points.shape == (state["n"], d)
    assert set(result["before"]) == set(source.MEASURES)
    agree(result["before"], measured(points, result["originals"]))
    star = metrics.isoscore_star(points, known, state["zeta"])
    np.testing.assert_allclose(result["before"]["isoscore_star"], star, rtol=RELATIVE)
    count = min(points.shape)
    np.testing.assert_allclose(result["curves"]["before"], metrics.explained_variance(points, k=count), rtol=RELATIVE)
    np.testing.assert_allclose(result["sigma"]["before"], metrics.dimension_std(points), rtol=RELATIVE, atol=1e-13)
    cells = np.reshape(result["cells"]["before"], (d, d)) / 255
    np.testing.assert_allclose(cells, metrics.abs_correlation(points), atol=0.5 / 255 + 1e-9)
    redraw = read(result["clouds"]["redraw"], d)
    expected = [metrics.isoscore(redraw), metrics.isoscore_unbiased(redraw)]
    np.testing.assert_allclose(result["redraws"], expected, rtol=RELATIVE)
    if state["transforms"]:
        image = transformed(points, state["transforms"])
        size = np.abs(image).max()
        np.testing.assert_allclose(read(result["clouds"]["after"], d), image, rtol=RELATIVE, atol=1e-11 * size)
        whitened = state["transforms"][-1].get("strength") == 1  # then I1 and I2 have no directions to look along
        assert (result["after"]["i1"] is None) == whitened
        without = ("i1", "i2") if whitened else ()
        agree(result["after"], measured(image, result["originals"]), without)


def test_the_random_numbers_are_the_documented_ones_to_the_bit(engine: Page) -> None:
    flat = {"d": 500, "n": 300, "seed": 4294967295}
    points = read(engine.evaluate(COMPUTE, {"part": flat, "draw": 1})["clouds"]["before"], 500)
    twin = normals(uniforms(flat["seed"], 0, 300, 0, 500))
    np.testing.assert_array_equal(points, twin)
    from scipy.stats import kstest, norm

    np.testing.assert_allclose(twin, norm.ppf(uniforms(flat["seed"], 0, 300, 0, 500)), rtol=1e-12)
    assert np.abs(twin).max() > 4 and kstest(twin.ravel(), "norm").pvalue > 0.01
    # rows and neighbouring numbers of a row are not correlated
    assert np.abs(np.corrcoef(twin)[~np.eye(300, dtype=bool)]).max() < 0.25
    assert abs(np.corrcoef(twin[:, :-1].ravel(), twin[:, 1:].ravel())[0, 1]) < 0.01
