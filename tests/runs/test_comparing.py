"""Which runs are compared, which are left out, and the sentences about the rest."""

from __future__ import annotations

import math
import re

import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from isoviz.errors import DifferentSetupsError, InputError
from isoviz.runs.comparisons import compare
from tests.dashboard.made_up import config, result, row, started

NONE = [0.600, 0.640, 0.580, 0.660, 0.620, 0.610]
ISOBN = [0.605, 0.630, 0.590, 0.655, 0.635, 0.600]
ISTAR = [0.700, 0.735, 0.690, 0.750, 0.722, 0.705]


def runs(values, method="baseline", params=None, prefix="r", **more):
    """One finished run per value, seeds from 0."""
    return [
        row(f"{prefix}-{method}-{seed}", config(method, seed, params, **more), outcome=result(value, 0.25))
        for seed, value in enumerate(values)
    ]


def three_methods(seeds=6):
    return [*runs(ISTAR[:seeds], "istar", {"lam": 1}), *runs(NONE[:seeds]), *runs(ISOBN[:seeds], "isobn")]


def only_part(rows, **more):
    (part,) = compare(rows, **more).parts
    return part


def test_each_method_against_the_baseline_paired_by_seed_and_corrected():
    table = compare(three_methods())
    (part,) = table.parts
    assert (part.model, part.task, part.metric) == ("demo/tiny-bert", "demo/acceptability", "accuracy")
    assert [(arm.label, arm.is_baseline) for arm in part.arms] == [
        ("Baseline", True),
        ("IsoBN β = 0.5", False),
        ("I-STAR λ = 1", False),
    ]
    by_method = {comparison.arm.split()[0]: comparison for comparison in part.comparisons}
    raw = [stats.ttest_rel(values, NONE).pvalue for values in (ISOBN, ISTAR)]
    holm = multipletests(raw, method="holm")[1]
    for name, values, p, corrected in zip(("IsoBN", "I-STAR"), (ISOBN, ISTAR), raw, holm, strict=True):
        compared = by_method[name]
        assert (compared.paired, compared.n, compared.unpaired, compared.test) == (True, 6, [], "paired t-test")
        assert compared.p == pytest.approx(p) and compared.p_holm == pytest.approx(corrected)
        ends = stats.ttest_rel(values, NONE).confidence_interval()
        assert (compared.low, compared.high) == pytest.approx((ends.low, ends.high))
        differences = [a - b for a, b in zip(values, NONE, strict=True)]
        assert compared.p_wilcoxon == pytest.approx(
            stats.wilcoxon(
                [round(x, 6) for x in differences], method=stats.PermutationMethod(n_resamples=10_000)
            ).pvalue
        )
    assert table.tests == 2
    assert (by_method["IsoBN"].verdict, by_method["I-STAR"].verdict) == ("not apart", "apart")
    assert by_method["I-STAR"].g_low > 1  # far from 0 in standard deviations


def test_sentences_read_as_answers():
    isobn, istar = (
        comparison.sentence
        for comparison in sorted(only_part(three_methods()).comparisons, key=lambda comparison: comparison.p < 0.01)
    )
    assert isobn.startswith(
        "IsoBN β = 0.5 − Baseline: +0.001 [−0.010, 0.012], 6 paired seeds: difference not shown (p = "
    )
    assert re.search(
        r"About [\d,]+0 seeds would show a true difference of this size\. The present seeds would likely show one of 0\.0",
        isobn,
    )
    assert istar.startswith("I-STAR λ = 1 − Baseline: +0.099 [0.0")
    assert istar.endswith("a significant difference (p < 0.001 after Holm's correction for 2 comparisons).")


def test_a_correction_spans_all_parts_of_the_table():
    tasks = ("demo/acceptability", "demo/sentiment")
    rows = [run for at, task in enumerate(tasks) for run in runs(NONE, task=task, prefix=f"{at}")]
    rows += [run for at, task in enumerate(tasks) for run in runs(ISOBN, "isobn", task=task, prefix=f"{at}")]
    table = compare(rows)
    assert [part.task for part in table.parts] == list(tasks) and table.tests == 2
    (one,) = compare([*runs(NONE), *runs(ISOBN, "isobn")]).parts[0].comparisons
    assert one.p == one.p_holm and "Holm" not in one.sentence
    assert table.parts[0].comparisons[0].p_holm == pytest.approx(min(1.0, 2 * table.parts[0].comparisons[0].p))


def test_runs_that_do_not_count_are_left_out_with_a_reason():
    rows = [
        *runs(NONE),
        *runs(ISOBN[:3], "isobn"),
        row("collapsed", config("isobn", 3), outcome=result(0.5, 0.5, collapsed="predicts one class")),
        row("chance", config("isobn", 8), outcome=result(0.49, 0.5, matthews=-0.02)),
        row("failed", config("isobn", 4), "failed", error={"message": "out of memory"}),
        row("diverged", config("isobn", 5), "diverged", error={"message": "the loss became non-finite"}),
        row("undefined", config("isobn", 6), outcome=result(None, 0.5)),
        row("waiting", config("isobn", 7), "queued"),
    ]
    part = only_part(rows)
    arm = next(arm for arm in part.arms if arm.label.startswith("IsoBN"))
    assert arm.values == dict(enumerate(ISOBN[:3]))
    assert {run.run: run.reason for run in arm.excluded} == {
        "collapsed": "collapsed: predicts one class",
        "chance": "collapsed: does no better than chance",
        "failed": "failed: out of memory",
        "diverged": "diverged: the loss became non-finite",
        "undefined": "accuracy is undefined",
        "waiting": "queued",
    }
    (one,) = part.comparisons
    assert (one.n, one.unpaired) == (3, [3, 4, 5])


def test_a_seed_counts_once_with_its_newest_finished_run():
    again = [
        row("s1", config("isobn", 0), outcome=result(0.9, 0.25)),  # newer by its id
        row("s2", config("isobn", 1), "failed", error={"message": "out of memory"}),
    ]
    rows = [*runs(NONE), *runs(ISOBN, "isobn", prefix="a"), *again]
    arm = next(arm for arm in only_part(rows).arms if arm.label.startswith("IsoBN"))
    assert arm.values[0] == 0.9 and arm.runs[0] == "s1"
    assert (arm.n, arm.repeats, arm.excluded) == (6, 1, [])


def test_runs_that_differ_in_more_are_refused_and_the_difference_named():
    rows = [*runs(NONE), *runs(ISOBN, "isobn", epochs=5, max_train=200)]
    with pytest.raises(
        DifferentSetupsError, match="compared by method, .* differ in epochs: 3, 5; max_train: not set, 200"
    ):
        compare(rows)


def test_the_same_name_with_other_content_is_refused():
    rows = [*runs(NONE), *runs(ISOBN, "isobn")]
    starts = {row.id: started() for row in rows}
    assert compare(rows, started=starts).tests == 1
    starts[rows[-1].id] = started().model_copy(update={"data_fingerprint": "other"})
    with pytest.raises(DifferentSetupsError, match="differ in content of the data"):
        compare(rows, started=starts)


def test_a_setting_or_a_parameter_can_be_compared():
    rates = [*runs(NONE, learning_rate=1e-4), *runs(ISTAR, learning_rate=1e-3)]
    (one,) = only_part(rates, by="learning_rate").comparisons
    assert (one.arm, one.baseline, one.paired) == ("learning_rate 0.001", "learning_rate 0.0001", True)
    strengths = [*runs(NONE, "istar", {"lam": -1}), *runs(ISTAR, "istar", {"lam": 1})]
    (one,) = only_part(strengths, by="lam").comparisons
    assert (one.arm, one.baseline) == ("λ = 1", "λ = −1")
    with pytest.raises(DifferentSetupsError, match="method: baseline, istar"):
        compare([*runs(NONE), *runs(ISTAR, "istar", {"lam": 1})], by="lam")


def test_changes_of_order_or_weights_are_not_paired():
    one_size, other = runs(NONE, batch_size=16), runs(ISTAR[:5], batch_size=32)
    (one,) = only_part([*one_size, *other], by="batch_size").comparisons
    reference = stats.ttest_ind(ISTAR[:5], NONE, equal_var=False)
    assert (one.paired, one.n, one.n_baseline, one.test, one.p_wilcoxon) == (False, 5, 6, "Welch's t-test", None)
    assert one.p == pytest.approx(reference.pvalue)
    assert (one.low, one.high) == pytest.approx(tuple(reference.confidence_interval()))
    assert "5 and 6 unpaired seeds" in one.sentence
    rows = [*runs(NONE, model="demo/tiny-bert"), *runs(ISTAR, model="other", prefix="o")]
    assert not only_part(rows, by="model").comparisons[0].paired


@pytest.mark.parametrize("seeds", [1, 2])
def test_too_few_seeds_is_an_answer(seeds):
    part = only_part([*runs(NONE[:seeds]), *runs(ISOBN[:seeds], "isobn")])
    (one,) = part.comparisons
    assert (one.verdict, one.p, one.seeds_needed) == ("too few seeds", None, None)
    assert one.sentence.endswith("not enough seeds to tell. Use at least 3 pairs, preferably 5.")
    assert compare([*runs(NONE[:seeds]), *runs(ISOBN[:seeds], "isobn")]).tests == 0


def test_the_same_in_every_seed_is_no_test():
    same = only_part([*runs(NONE), *runs(NONE, "isobn")]).comparisons[0]
    assert (same.verdict, same.p) == ("no spread", None) and same.sentence.endswith("the same in every seed.")
    rounded = [math.nextafter(value, side) for value, side in zip(NONE, [0, 1] * len(NONE), strict=False)]
    assert only_part([*runs(NONE), *runs(rounded, "isobn")]).comparisons[0].verdict == "no spread"
    shifted = only_part([*runs([0.5, 0.25, 0.75]), *runs([0.625, 0.375, 0.875], "isobn")]).comparisons[0]
    assert "+0.125, 3 paired seeds: the same difference in every seed" in shifted.sentence


def test_a_finding_that_does_not_survive_correction_says_both():
    near = [a + b for a, b in zip(NONE, (0.02, 0.012, 0.004, 0.03, 0.001, 0.017), strict=True)]
    rows = [
        *runs(NONE),
        *runs(near, "isobn"),
        *(run for n in range(1, 5) for run in runs(ISOBN, "istar", {"lam": n}, prefix=f"{n}")),
    ]
    one = next(comparison for comparison in only_part(rows).comparisons if comparison.arm.startswith("IsoBN"))
    assert one.p < 0.05 < one.p_holm and one.low > 0
    assert "uncorrected, " in one.sentence and "difference not shown" in one.sentence


def test_a_measure_of_isotropy_can_be_compared():
    rows = [
        row(f"{method}{seed}", config(method, seed), outcome=result(0.5 + seed / 10, 0.2 + seed / 100 + shift))
        for method, shift in (("baseline", 0.0), ("isobn", 0.1))
        for seed in range(3)
    ]
    part = only_part(rows, metric="isoscore_star")
    assert part.metric == "isoscore_star" and part.comparisons[0].difference == pytest.approx(0.1)


def test_nothing_learned_is_reported():
    rows = [*runs([0.6, 0.61, 0.62]), *runs([0.6, 0.6, 0.625], "isobn")]
    starts = {row.id: started({"majority": 0.5, "bag_of_words": 0.625}) for row in rows}
    assert only_part(rows, started=starts).warnings == [
        "Nothing was learned: no run beats bag of words (0.625). Do not compare."
    ]
    rows.append(row("better", config("isobn", 3), outcome=result(0.63, 0.2)))
    assert only_part(rows, started=starts).warnings == []


def test_another_baseline_by_method_or_label():
    part = only_part(three_methods(), baseline="isobn")
    assert {comparison.baseline for comparison in part.comparisons} == {"IsoBN β = 0.5"}
    assert {comparison.baseline for comparison in only_part(three_methods(), baseline="I-STAR λ = 1").comparisons} == {
        "I-STAR λ = 1"
    }
    with pytest.raises(InputError, match="no runs of 'flow' here"):
        compare(three_methods(), baseline="flow")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"by": "colour"}, "unknown setting to compare by 'colour'"),
        ({"by": "task"}, "unknown setting to compare by 'task'"),
        ({"by": "epochs"}, "all of these runs have the same epochs: epochs 3"),
        ({"metric": "bleu"}, "have no 'bleu'"),
        ({"alpha": 1.5}, "alpha"),
    ],
)
def test_bad_input_says_what_is_allowed(words, message):
    with pytest.raises(InputError, match=message):
        compare(three_methods(), **words)
    with pytest.raises(InputError, match="no runs"):
        compare([])
