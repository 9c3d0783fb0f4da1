"""IsoViz: measure, change and compare the isotropy of transformer embeddings.

Importing this package is cheap: torch, transformers and datasets are imported by the modules that compute with them,
never by the catalogues, the configuration or the store.
"""

from __future__ import annotations

__version__ = "0.1.0"
