"""From runs to conclusions: which runs can be compared, do they differ, does isotropy go with performance?"""

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
