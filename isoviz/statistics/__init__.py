"""What can be said of runs that differ in nothing but their seed. Pure functions of numbers."""

from isoviz.statistics.spread import mean_sd

__all__ = ["mean_sd"]
