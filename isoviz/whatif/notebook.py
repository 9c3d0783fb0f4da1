"""The same answer as a few lines of Python."""

from __future__ import annotations

from collections.abc import Sequence

from isoviz.errors import InputError
from isoviz.whatif.chains import Step


def source(run: str, cloud: str, steps: Sequence[Step], metric: str, d: int) -> str:
    """Lines for a notebook that print the numbers of the page: IsoScore before and after, the metric with both heads.

    Args:
        d: dimensions of the run's vectors, which its frozen head reads.
    """
    names = sorted({step.slug for step in steps if not step.kind.needs_labels})
    chosen = "" if cloud == "head" else f', cloud="{cloud}"'
    lines = [
        "from isoviz import metrics",
        f"from isoviz.posthoc import {', '.join(['chain', *names])}",
        "from isoviz.whatif import embeddings",
        "",
        f'cloud = embeddings("{run}"{chosen})',
        f"transform = chain([{', '.join(step.source for step in steps)}]).fit(cloud.train)",
        "train, after = transform.transform(cloud.train), transform.transform(cloud.validation)",
        'print("IsoScore", metrics.isoscore(cloud.validation), "->", metrics.isoscore(after))',
        f'print("{metric}, frozen head", cloud.frozen_metric(cloud.validation), "->", cloud.frozen_metric(after))'
        if _keeps_width(steps, d)
        else "# the frozen head cannot read fewer dimensions",
        f'print("{metric}, refitted head", cloud.refitted_metric(cloud.train, cloud.validation), "->", '
        "cloud.refitted_metric(train, after))",
    ]
    return "\n".join(lines)


def of_vectors(key: str, steps: Sequence[Step]) -> str:
    """Lines for a notebook that print the numbers of the page on kept vectors: every read-out with its interval, and IsoScore."""
    names = sorted({step.slug for step in steps})
    return "\n".join(
        [
            "from isoviz import metrics, readouts, vectors",
            f"from isoviz.posthoc import {', '.join(['chain', *names])}",
            "from isoviz.readouts.division import divide",
            "",
            f'found = vectors.load("{key}")',
            "part = divide(found)",
            f"transform = chain([{', '.join(step.source for step in steps)}]).fit(found.points[part.fit])",
            "before = found.points[part.rows]",
            "after = transform.transform(before)",
            'print("IsoScore", metrics.isoscore(before), "->", metrics.isoscore(after))',
            "for one in readouts.compare(before, after, part.known):",
            "    print(one.readout.title, one.before, one.after, one.difference, one.verdict)",
        ]
    )


def _keeps_width(steps: Sequence[Step], d: int) -> bool:
    try:
        return all(step.kind.needs_labels or step.make().image_width(d) == d for step in steps)
    except InputError:  # a step that cannot be fitted; the page says so
        return False
