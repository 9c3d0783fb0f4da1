"""How long do the measures of each row take, and how often is a slice wrongly called different?

    python benchmarks/rows.py [--out docs] [--repeats 5] [--quick]

Speed in seconds of the processor, beside one single-precision product of all pairs. Slices are drawn at random, so that every
difference found is a false alarm.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from _report import Table, finish, machine, medians, options, parse

import isoviz
from isoviz.readouts import Annotations, slices

BAR = 1.5
SIZES = (0.4, 0.2, 0.15, 0.1, 0.08, 0.07)


def main() -> int:
    """Print both tables, and write them if asked."""
    chosen = parse(options(__doc__, repeats=5))
    n, draws = (1_000, 20) if chosen.quick else (10_000, 1_000)
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n, 60)) @ generator.normal(size=(60, 768)) + 0.6 * generator.normal(size=(n, 768))
    x = x.astype(np.float32)
    taken = medians({"product": lambda: x @ x.T, "rows": lambda: isoviz.rows(x)}, chosen.repeats, time.process_time)
    ratio = taken["rows"] / taken["product"]
    speed = Table(f"isoviz.rows, {n:,} × 768 float32", ["", "seconds of the processor"])
    speed.rows = [[name, f"{value / 1e3:.2f}"] for name, value in taken.items()]
    speed.notes = [f"Ratio {ratio:.2f}; the bar is {BAR}."]
    missed = [] if ratio <= BAR else [f"rows takes {ratio:.2f} times a product"]
    return finish(
        chosen,
        "rows",
        "## Each row, and slices",
        machine(("numpy", "scipy"), "one thread"),
        missed,
        speed,
        alarms(draws),
    )


def alarms(draws: int) -> Table:
    """How often any of six slices of 300 units is called different from the rest."""
    generator, names = np.random.default_rng(1), [f"s{k}" for k in range(len(SIZES))]
    populations = {
        "right or wrong, 97 % right": lambda: (generator.random(300) < 0.97) * 1.0,
        "right or wrong, 70 % right": lambda: (generator.random(300) < 0.7) * 1.0,
        "normal": lambda: generator.normal(size=300),
        "log-normal": lambda: generator.lognormal(size=300),
    }
    table = Table("Slices of one population called different (Holm, 5 %)", ["units", "tables with a false alarm"])
    for name, draw in populations.items():
        found = 0
        for _ in range(draws):
            codes = generator.choice(len(SIZES), 300, p=SIZES)
            found += any(
                one.p < slices.ALPHA for one in slices.compared(slices.of_units({"": (draw(), codes)}, names), names)
            )
        table.rows.append([name, f"{100 * found / draws:.1f} %"])
    found, draws = 0, max(10, draws // 10)
    for _ in range(draws):
        cloud = generator.normal(size=(300, 32)) / np.sqrt(np.arange(1, 33)) + 0.1
        of = slices.slicing(pd.DataFrame({"group": generator.choice(names, 300, p=SIZES)}), "group")
        found += any(one.p < slices.ALPHA for one in slices.measured(cloud, Annotations(), of))
    table.rows.append(["rows of a cloud, every measure of `measure --by`", f"{100 * found / draws:.1f} %"])
    table.notes.append(f"{draws * 10:,} draws of 300 units in slices of 7 to 40 %; of the cloud, {draws:,}.")
    return table


if __name__ == "__main__":
    raise SystemExit(main())
