"""The page's numbers as Python code."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from isoviz.errors import InputError
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import WhatIf


def source(engine: WhatIf, steps: Sequence[Step]) -> str:
    """Code for a notebook that prints the page's numbers: IsoScore before and after, and the read-outs."""
    names = ", ".join(["chain", *sorted({step.slug for step in steps if step.kind.needs != "labels"})])
    transform = f"transform = chain([{', '.join(step.source for step in steps)}])"
    cloud = engine.source
    if isinstance(cloud, Embeddings):
        keeps_width, metric, run = False, cloud.facts["primary"], cloud.facts["run"]
        argument = "" if cloud.cloud == "head" else f', cloud="{cloud.cloud}"'
        frozen = "# the frozen head cannot read fewer dimensions"
        d = engine.train.shape[1]
        with contextlib.suppress(InputError):  # the step cannot be fitted, and the page reports it
            keeps_width = all(step.kind.needs == "labels" or step.make().image_width(d) == d for step in steps)
        if keeps_width:
            frozen = f'print("{metric}, frozen head", cloud.frozen_metric(cloud.validation), "->", cloud.frozen_metric(after))'
        return f"""from isoviz import metrics
from isoviz.posthoc import {names}
from isoviz.whatif import embeddings

cloud = embeddings("{run}"{argument})
{transform}.fit(cloud.train)
train, after = transform.transform(cloud.train), transform.transform(cloud.validation)
print("IsoScore", metrics.isoscore(cloud.validation), "->", metrics.isoscore(after))
{frozen}
print("{metric}, refitted head", cloud.refitted_metric(cloud.train, cloud.validation), "->", cloud.refitted_metric(train, after))"""
    fit, rows = (
        (", cloud.groups[0]", ", cloud.groups[1]") if any(step.kind.needs == "groups" for step in steps) else ("", "")
    )
    return f"""from isoviz import metrics, readouts, vectors
from isoviz.posthoc import {names}
from isoviz.readouts.division import divide

cloud = divide(vectors.load("{engine.key}"))
{transform}.fit(cloud.train{fit})
after = transform.transform(cloud.validation{rows})
print("IsoScore", metrics.isoscore(cloud.validation), "->", metrics.isoscore(after))
for result in readouts.compare(cloud.validation, after, cloud.annotations):
    print(result.readout.title, result.before, result.after, result.difference, result.verdict)"""
