"""Python side of the live lines: one run in detail or several runs overlaid, drawn from the events route."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.components import bundle
from dashboard.server import routes
from dashboard.shared import measures, theme
from dashboard.shared.explanations import SPECTRUM, Explanation
from dashboard.shared.wording import run_title
from isoviz import methods
from isoviz.runs.naming import method_title, variant
from isoviz.runs.rows import RunRow

LOSS = Explanation(
    title="Loss",
    reading=(
        "What the optimiser minimises at each step: the task's loss, the terms that the isotropy method adds, and "
        "their total. If the validation loss rises while the total falls, the model is overfitting."
    ),
    formula=r"L = L_\text{task} + \sum_i L_i",
    formula_text="L = L_task + Σ L_penalty   (each penalty as it enters the sum)",
    paper="Penalties: Rudman & Eickhoff 2024 (I-STAR); Gao et al. 2019 (CosReg).",
)

METRIC = Explanation(
    title="Task performance",
    reading=(
        "The task's metric on the validation split, before training (epoch 0) and after each epoch. Grey lines "
        "are simple baselines: a useful model is above them."
    ),
    formula=r"\text{accuracy} = \frac{\#\{\hat y_i = y_i\}}{n}",
    formula_text="accuracy = correct predictions / n;  other tasks use Matthews or Pearson correlation, or F1",
    paper="Wang et al. 2019 (GLUE) for the choice of metric per task.",
)

ISOTROPY = Explanation(
    title="Isotropy",
    reading=(
        "1 means that the vectors spread evenly in all directions, 0 that they lie on one line; more isotropic is "
        "not better by itself. The menu names the vectors behind each score: the classifier's input and the tokens of all "
        "layers often differ."
    ),
    formula=(
        r"\text{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}, \quad "
        r"\mathrm{PR} = \frac{(\operatorname{tr} \Sigma)^2}{\operatorname{tr} \Sigma^2}"
    ),
    formula_text=(
        "IsoScore = (PR − 1)/(d − 1),  PR = (tr Σ)² / tr(Σ²)\n"
        "IsoScore*: the same of (1 − ζ) Σ + ζ Σ_S, ζ = 0.2, Σ_S from training tokens"
    ),
    paper=(
        "Rudman et al. 2022 (IsoScore); Rudman & Eickhoff 2024 (IsoScore*); Himeno & Yamada 2014 (unbiased traces)."
    ),
)

_EXPLANATIONS = {"loss": LOSS, "metric": METRIC, "isotropy": ISOTROPY, "spectrum": SPECTRUM}

_SCRIPTS = [
    "fold",
    "recording",
    "feed",
    "look",
    "plotly_script",
    "saved_picture",
    "figures",
    "replay",
    "live_lines",
]
_mount = st.components.v2.component(
    "isoviz_live_lines",
    html=bundle("live_lines.html"),
    css=bundle("help.css", "live_lines.css"),
    js=bundle(*(f"{name}.js" for name in _SCRIPTS)),
    isolate_styles=False,  # plotly.js writes its styles into the document's head
)


def live_lines(runs: Sequence[RunRow], *, key: str, replay: int | None = None) -> None:
    """Mount the live view of these runs. It updates without page reruns, and can replay finished runs.

    Args:
        runs: one run (every loss term, all metrics, ghosts of earlier epochs) or several (one line per run and figure).
        key: key of the mounted element; the same key keeps it in place for other runs.
        replay: replay finished runs immediately at this multiple of their speed; None: only on the button.
    """
    seeds = sorted({row.config.seed for row in runs})
    setting_of = {row.id: (row.config.method, variant(row.config.method, row.config.params)) for row in runs}
    settings = list(dict.fromkeys(setting_of.values()))
    by_method = len(settings) == len({method for method, _ in settings})
    described = []
    for row in runs:
        (method, values), seed = setting_of[row.id], row.config.seed
        colour = theme.method_colour(method)
        if not by_method and method != "baseline":  # where methods come with several values, these have the colours
            colour = _COLOURS[settings.index((method, values)) % len(_COLOURS)]
        described.append(
            {
                "id": row.id,
                "label": run_title(row),
                "short": ", ".join(filter(None, (method_title(method), values, f"seed {seed}" * (len(seeds) > 1)))),
                "colour": colour,
                "dash": theme.DASHES[seeds.index(seed) % len(theme.DASHES)] if len(runs) > 1 else "solid",
                "epochs": row.config.epochs + bool(methods.get(method).frozen_stage),  # a second stage counts as one
            }
        )
    _mount(
        key=key,
        data={
            "runs": described,
            "events": f"{routes.PREFIX}/events",
            "plotly": routes.plotly_path(),
            "metrics": measures.live(),
            "measure": measures.default_for(row.config.method for row in runs).slug,
            "help": {name: entry.plain() for name, entry in _EXPLANATIONS.items()},
            # Makes the component poll again after a finished run was resumed.
            "seen": [row.status for row in runs],
            "replay": replay,
        },
    )


_COLOURS = (*theme.PALETTE, *theme.SPARE_COLOURS)
