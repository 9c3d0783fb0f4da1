"""The page's numbers as Python code."""

from __future__ import annotations

from collections.abc import Sequence

from isoviz.errors import InputError
from isoviz.whatif.chains import Step


def source(run: str, cloud: str, steps: Sequence[Step], metric: str, d: int) -> str:
    """Code for a notebook that prints the page's numbers: IsoScore before and after, and the metric with both heads.

    Args:
        d: dimensions of the run's vectors.
    """
    names = sorted({step.slug for step in steps if not step.kind.needs_labels})
    cloud_argument = "" if cloud == "head" else f', cloud="{cloud}"'
    lines = [
        "from isoviz import metrics",
        f"from isoviz.posthoc import {', '.join(['chain', *names])}",
        "from isoviz.whatif import embeddings",
        "",
        f'cloud = embeddings("{run}"{cloud_argument})',
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
    """Code for a notebook that prints the page's numbers on stored vectors: all read-outs with intervals, and IsoScore."""
    names = sorted({step.slug for step in steps})
    return "\n".join(
        [
            "from isoviz import metrics, readouts, vectors",
            f"from isoviz.posthoc import {', '.join(['chain', *names])}",
            "from isoviz.readouts.division import divide",
            "",
            f'vector_set = vectors.load("{key}")',
            "part = divide(vector_set)",
            f"transform = chain([{', '.join(step.source for step in steps)}]).fit(vector_set.points[part.fit])",
            "before = vector_set.points[part.rows]",
            "after = transform.transform(before)",
            'print("IsoScore", metrics.isoscore(before), "->", metrics.isoscore(after))',
            "for result in readouts.compare(before, after, part.annotations):",
            "    print(result.readout.title, result.before, result.after, result.difference, result.verdict)",
        ]
    )


def _keeps_width(steps: Sequence[Step], d: int) -> bool:
    try:
        return all(step.kind.needs_labels or step.make().image_width(d) == d for step in steps)
    except InputError:  # the step cannot be fitted, and the page reports it
        return False
