"""The claims table of the real-encoder benchmark: verdicts by hand on made-up runs."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def claims(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("_claims")


def made_up(claims, slug, seed, **values):
    return claims.Line(task="glue/cola", method=slug, slug=slug, seed=seed, **values)


def verdicts(claims, lines):
    """First words of each claim → (seen, seeds, figures)."""
    return {row[1]: tuple(row[2:]) for row in claims.claims_table(lines).rows}


def two_seeds(claims):
    base = {"metric": 0.5, "isoscore_star": 0.3, "cosine": 0.9, "isoscore": 0.2, "norm": 2.0, "seconds": 10.0}
    lines = []
    for seed in (0, 1):
        lines += [
            made_up(claims, "baseline", seed, **base, tokens=0.2, tokens_cosine=0.8),
            made_up(claims, "isolayer", seed, isoscore=0.4, pooled=0.2, metric=0.495 - 0.02 * seed),
            made_up(claims, "istar", seed, lam=-1.0, isoscore_star=0.1),
            made_up(claims, "istar", seed, lam=1.0, isoscore_star=0.05 + 0.1 * seed),
            made_up(claims, "isobn", seed, ev=(0.4, 0.6, 0.7), pooled_ev=(0.8, 0.9, 1.0)),
            made_up(claims, "batchnorm", seed, ev=(0.6, 0.7, 0.8), pooled_ev=(0.8, 0.9, 1.0)),
            made_up(claims, "cosreg", seed, cosine=0.5, isoscore=0.19, tokens=0.3, tokens_cosine=0.1),
            made_up(claims, "spectrum_pol", seed, norm=1.0),
            made_up(claims, "flow", seed, seconds=15.0),
        ]
    return lines


def test_a_claim_is_seen_only_if_every_seed_shows_it(claims):
    outcome = verdicts(claims, two_seeds(claims))
    assert outcome["IsoLayer raises IsoScore (its input → its output)"] == (
        "yes",
        "2 of 2",
        "0.2000 → 0.4000; 0.2000 → 0.4000",
    )
    # 0.495 is within 0.01 of 0.5, 0.475 is not
    assert outcome["IsoLayer keeps or lifts the metric (minus the baseline's)"] == ("no", "1 of 2", "-0.0050; -0.0250")
    assert outcome["IsoBN lowers EV_1/EV_2/EV_3 (output over input)"][0] == "yes"
    assert outcome["IsoBN lowers them more than batch normalisation"][2].startswith(
        "0.500/0.667/0.700 against 0.750/0.778/0.800"
    )
    assert outcome["λ < 0 lowers IsoScore* (against the baseline)"][:2] == ("yes", "2 of 2")
    assert outcome["λ < 0 lowers IsoScore* (against λ > 0)"][:2] == ("no", "1 of 2")
    assert outcome["CosReg moves the mean cosine, hardly IsoScore (head)"][0] == "yes"
    assert outcome["CosReg moves the mean cosine, hardly IsoScore (all layers' tokens)"][0] == "no"
    assert outcome["Spectrum control, polynomial, shrinks ‖W‖"][0] == "yes"
    assert outcome["Flow costs several times the time"] == ("no", "0 of 2", "1.50 ×; 1.50 ×")


def test_missing_and_unfinished_runs_are_not_measured(claims):
    lines = [line for line in two_seeds(claims) if line.slug != "isobn"]
    lines.append(made_up(claims, "spectrum_exp", 0, status="diverged", norm=0.1))
    outcome = verdicts(claims, lines)
    assert outcome["IsoBN lowers EV_1/EV_2/EV_3 (output over input)"] == ("not measured", "—", "—")
    assert outcome["IsoBN lowers them more than batch normalisation"][0] == "not measured"
    assert outcome["Spectrum control, exponential, shrinks ‖W‖"][0] == "not measured"


def test_runs_and_means_show_gaps_and_endings(claims):
    lines = [
        made_up(claims, "flow", 0, metric=0.5, seconds=120.0),
        made_up(claims, "flow", 1, metric=0.7),
        made_up(claims, "cosreg", 0, status="diverged"),
    ]
    runs = claims.runs_table(lines)
    assert runs.rows[0][:4] == ["glue/cola", "flow", "0", "0.5000"]
    assert runs.rows[0][-1] == "120.0"
    assert runs.rows[2][1] == "cosreg (diverged)"
    assert set(runs.rows[2][3:]) == {"—"}
    means = claims.means_table(lines)
    assert means.rows[0][:4] == ["glue/cola", "flow", "2", "0.6000 ± 0.1414"]
    assert means.rows[0][-1] == "120.0"
    assert all(len(row) == len(means.header) for row in means.rows)
