"""Comparisons of runs: which runs can be compared, whether they differ, and whether isotropy correlates with performance."""

from isoviz.runs.comparisons.association import Association, SettingMean, associate
from isoviz.runs.comparisons.comparing import compare, nothing_learned
from isoviz.runs.comparisons.table import Arm, Comparison, Excluded, Part, Table

__all__ = [
    "Arm",
    "Association",
    "Comparison",
    "Excluded",
    "Part",
    "SettingMean",
    "Table",
    "associate",
    "compare",
    "nothing_learned",
]
