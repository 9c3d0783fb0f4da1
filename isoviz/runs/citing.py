"""What to cite for a set of runs: their methods, data, models and measures."""

from __future__ import annotations

from collections.abc import Iterable

from isoviz import bibliography, methods, metrics, tasks
from isoviz.config import RunConfig
from isoviz.errors import IsoVizError
from isoviz.methods.composition import Composed
from isoviz.methods.protocol import Method
from isoviz.models import families, sources


def bibtex(configs: Iterable[RunConfig], measures: Iterable[str] = ()) -> dict[str, str]:
    """Key → BibTeX entry, sorted by key.

    Args:
        configs: of the runs. Own data, own models and what a package of the user's adds have no entry unless they bring one.
        measures: slugs of the measures of isotropy that are reported.
    """
    return bibtex_of([(config.model, config.task, config.method) for config in configs], measures)


def bibtex_of(runs: Iterable[tuple[str, str, str]], measures: Iterable[str] = ()) -> dict[str, str]:
    """As `bibtex`, of (model, task, method)."""
    known = dict(bibliography.entries())
    for method in methods.catalogue().values():
        known |= bibliography.parse(method.paper.bibtex) if method.paper else {}
    keys: set[str] = set()
    for model, task, method_slug in dict.fromkeys(runs):
        keys |= _of_method(method_slug)
        keys |= set(found.cites) if (found := tasks.catalogue().get(task)) else set()
        keys |= set(families.CITES.get(_family(model), ()))
    catalogue = metrics.catalogue()
    keys |= {catalogue[slug].paper.key for slug in measures if slug in catalogue}
    return {key: known[key] for key in sorted(keys & known.keys())}


def _of_method(slug: str) -> set[str]:
    found = methods.find(slug)
    if found is None:
        return set()
    parts: tuple[type[Method], ...] = found.part_classes if issubclass(found, Composed) else (found,)
    return {key for part in parts if part.paper for key in bibliography.parse(part.paper.bibtex)}


def _family(model: str) -> str:
    """A model's family; "" where its configuration cannot be read here and now."""
    try:
        return str(sources.configuration(sources.resolve(model)).get("model_type", ""))
    except IsoVizError:
        return ""
