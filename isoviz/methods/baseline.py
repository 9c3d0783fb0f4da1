"""Plain fine-tuning, the reference for every other method."""

from isoviz.methods.protocol import Method


class Baseline(Method):
    """Fine-tuning without any isotropy method."""

    slug = "baseline"
    title = "Baseline"
    summary = "Plain fine-tuning with nothing added."
    equation = r"L = L_{\mathrm{task}}"
    of_rows_together = False
