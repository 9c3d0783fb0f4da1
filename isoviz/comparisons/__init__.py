"""Comparisons of runs: which runs can be compared, whether they differ, and whether isotropy correlates with performance."""

from isoviz.comparisons.association import Association, SettingMean, associate, associate_means
from isoviz.comparisons.comparing import compare
from isoviz.comparisons.learning import nothing_learned
from isoviz.comparisons.table import Arm, Comparison, Excluded, Part, Table

__all__ = [
    "Arm",
    "Association",
    "Comparison",
    "Excluded",
    "Part",
    "SettingMean",
    "Table",
    "associate",
    "associate_means",
    "compare",
    "nothing_learned",
]
