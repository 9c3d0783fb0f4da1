"""Statistics of runs that differ only in their seed, and of several such sets. Pure functions of numbers; scipy is imported on
use."""

from isoviz.statistics.spread import mean_sd

__all__ = ["mean_sd"]
