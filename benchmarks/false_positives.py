"""How often the statistics of our tables find a difference where there is none, and how often their intervals cover the truth.

    python benchmarks/false_positives.py [--draws 10000] [--out docs]

Writes the section of docs/statistics.md; ten minutes on one core. tests/statistics/test_false_positives.py holds the same
simulations to their bounds with fewer draws.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import _false_positives as simulated
import numpy as np
from _report import Table, machine, write_section


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def tests(draws: int, rng: np.random.Generator) -> Table:
    """False-positive rates of the two-sample tests."""
    table = Table("False positives of single tests at 5 %", ["test and scores", *(f"n = {n}" for n in simulated.SEEDS)])
    for kind in simulated.SCORES:
        cells = [_percent(simulated.paired(kind, n, draws, rng)) for n in simulated.SEEDS]
        table.rows.append([f"paired t, {kind}", *cells])
    for kind in simulated.SCORES:
        table.rows.append([f"Wilcoxon, {kind}", "—", "—", _percent(simulated.wilcoxon(kind, 10, draws, rng))])
    for kind in simulated.SCORES:
        for ratio in (1, 2, 4):
            cells = [_percent(simulated.welch(kind, n, ratio, draws, rng)) for n in simulated.SEEDS]
            table.rows.append([f"Welch, {kind}, spreads 1 : {ratio}", *cells])
    table.notes.append("Wilcoxon's test is not made below six pairs.")
    return table


def tables(draws: int, rng: np.random.Generator) -> Table:
    """Familywise error rates of complete tables."""
    table = Table(
        "At least one false finding in a table of paired t-tests, uncorrected → after Holm",
        ["table", *(f"n = {n}" for n in simulated.SEEDS)],
    )
    for words, methods, against in (
        ("9 methods against the baseline's", 9, True),
        ("all pairs of 5 methods", 5, False),
        ("all pairs of 9 methods", 9, False),
    ):
        rates = [simulated.familywise(methods, n, against, draws, rng) for n in simulated.SEEDS]
        table.rows.append([words, *(f"{_percent(plain)} → {_percent(holm)}" for plain, holm in rates)])
    return table


def correlations(draws: int, rng: np.random.Generator) -> Table:
    """Permutation tests and intervals of rank correlations."""
    table = Table("Rank correlations: false positives at 5 %", ["settings", "draws", "Spearman", "Kendall"])
    for settings, tasks, share in ((5, 1, 1.0), (7, 1, 1.0), (21, 1, 0.2), (7, 3, 0.2)):
        count = max(200, int(share * draws))
        words = f"{settings} settings, {tasks} task{'s whose levels differ' if tasks > 1 else ''}"
        rates = [simulated.rank(kind, settings, tasks, count, rng) for kind in ("spearman", "kendall")]
        table.rows.append([words, f"{count:,}", *map(_percent, rates)])
    return table


def coverage(draws: int, rng: np.random.Generator) -> list[Table]:
    """How often the intervals cover."""
    count = max(500, draws // 5)
    means = Table(f"Coverage of 95 % intervals of a mean, {count:,} draws", ["scores, n", *_KINDS])
    for kind in simulated.SCORES:
        for n in (3, 5, 10, 20):
            rates = simulated.mean_coverage(kind, n, count, rng)
            means.rows.append([f"{kind}, {n}", *(_percent(rates[name]) for name in _KINDS)])
    count = max(100, draws // 50)
    ranks = Table(
        f"Coverage of the bootstrap's 95 % interval of Spearman's ρ, {count:,} draws",
        ["settings", *(f"correlation {strength:g}" for strength in _STRENGTHS)],
    )
    for settings in (7, 21):
        cells = [_percent(simulated.rank_coverage(settings, strength, count, rng)) for strength in _STRENGTHS]
        ranks.rows.append([str(settings), *cells])
    return [means, ranks]


_KINDS = ("Student's t", "percentile bootstrap", "BCa bootstrap")
_STRENGTHS = (0.0, 0.5, 0.8)


def main() -> None:
    """Simulate, print, and write the section if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the section of DIR/statistics.md")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    sections = [tests(options.draws, rng), tables(options.draws, rng), correlations(options.draws, rng)]
    sections += coverage(options.draws, rng)
    for table in sections:
        print(table.text(), flush=True)
    if options.out:
        stamp = f"{options.draws:,} draws where nothing else is said, seed 0. {machine(['numpy', 'scipy'], '1 thread')}"
        parts = [stamp, *(table.markdown() for table in sections)]
        write_section(options.out / "statistics.md", "false positives", "\n\n".join(parts))


if __name__ == "__main__":
    main()
