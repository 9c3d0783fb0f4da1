"""Citations for a set of runs: methods, data, models and measures."""

from __future__ import annotations

from collections.abc import Iterable

from isoviz import bibliography, methods, metrics, tasks
from isoviz.errors import IsoVizError
from isoviz.methods.composition import Composed
from isoviz.methods.protocol import Method
from isoviz.models import families, sources


def bibtex_of(runs: Iterable[tuple[str, str, str]], measures: Iterable[str] = ()) -> dict[str, str]:
    """Key → BibTeX entry, sorted by key.

    Args:
        runs: (model, task, method) of each. The user's data and models have no entry; plug-ins only if they provide one.
        measures: slugs of the reported measures of isotropy.
    """
    entries = dict(bibliography.entries())
    keys: set[str] = set()
    for model, task, method in dict.fromkeys(runs):
        of_method = _of_method(method)
        entries |= of_method
        keys |= of_method.keys()
        keys |= set(found.cites) if (found := tasks.catalogue().get(task)) else set()
        keys |= set(families.CITES.get(_family(model), ()))
    catalogue = metrics.catalogue()
    keys |= {catalogue[slug].paper.key for slug in measures if slug in catalogue}
    return {key: entries[key] for key in sorted(keys & entries.keys())}


def _of_method(slug: str) -> dict[str, str]:
    method = methods.find(slug)
    if method is None:
        return {}
    parts: tuple[type[Method], ...] = method.part_classes if issubclass(method, Composed) else (method,)
    return bibliography.parse("\n".join(part.paper.bibtex for part in parts if part.paper))


def _family(model: str) -> str:
    try:
        return str(sources.configuration(sources.resolve(model)).get("model_type", ""))
    except IsoVizError:
        return ""
