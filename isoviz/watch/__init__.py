"""Watch the isotropy of vectors during any training, and decide whether they collapsed: `trainer.add_callback(isoviz.Watch())`.

Needs numpy only; an adapter imports its library when it is used.
"""

from isoviz.watch.collapse import Alarm, CollapseTest
from isoviz.watch.measures import IsotropyEvaluator, measures_of
from isoviz.watch.watching import Watch, WatchWarning

__all__ = ["Alarm", "CollapseTest", "IsotropyEvaluator", "Watch", "WatchWarning", "measures_of"]
