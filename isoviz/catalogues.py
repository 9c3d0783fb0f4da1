"""Items of an open catalogue: from a folder of this package and from other installed packages.

A package adds an item with an entry point in the catalogue's group (`isoviz.methods`, `isoviz.metrics`,
`isoviz.transforms`, `isoviz.tasks`, `isoviz.studies`, `isoviz.readouts`, `isoviz.formats`, `isoviz.stores`,
`isoviz.operations`), in its pyproject.toml:

    [project.entry-points."isoviz.transforms"]
    halve = "lab_isotropy.halve"           # a module with any number of items
    double = "lab_isotropy.more:double"    # or a single item

Pages and every starting worker import its modules, so import torch inside functions only.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import logging
import pkgutil
import re
from collections.abc import Collection, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["discover", "in_folder", "installed"]

_log = logging.getLogger(__name__)

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_/-]*")


def discover(
    folder: str, group: str, kind: type, *, listed_as: str = "", reserved: Collection[str] = ()
) -> dict[str, Any]:
    """All items by slug: bundled ones sorted by module name, then installed ones by package and entry name.

    Args:
        folder: package whose modules contain the bundled items, "isoviz.methods".
        group: the entry point group for installed items.
        kind: the base class of the items, if these are classes; a class counts if it sets `slug` itself.
        listed_as: if the items are instances of `kind`, the module attribute with one item or a sequence of items.
        reserved: slugs that installed items may not use.

    An installed item that cannot be imported, is incomplete or has a slug already in use is skipped, with one line in the log.
    """
    bundled = in_folder(folder, kind, listed_as=listed_as)
    return bundled | installed(group, kind, listed_as=listed_as, taken={*bundled, *reserved})


def in_folder(folder: str, kind: type, *, listed_as: str = "") -> dict[str, Any]:
    """The bundled items by slug; arguments as for `discover`."""
    items: dict[str, Any] = {}
    for info in pkgutil.iter_modules(importlib.import_module(folder).__path__):
        if listed_as and not _names(f"{folder}.{info.name}", listed_as):
            continue
        module = importlib.import_module(f"{folder}.{info.name}")
        classes = [item for item in _classes(module, kind) if item.__module__ == module.__name__]
        items |= {item.slug: item for item in (_listed(module, listed_as) if listed_as else classes)}
    return items


def _names(module: str, word: str) -> bool:
    """Whether a module's source contains this word. A module without it lists no items, and importing it might load torch."""
    spec = importlib.util.find_spec(module)
    get_source = getattr(spec.loader, "get_source", None) if spec else None
    return get_source is None or word in (get_source(module) or "")


def installed(group: str, kind: type, *, listed_as: str = "", taken: Collection[str] = ()) -> dict[str, Any]:
    """The items of installed packages by slug, except `taken` slugs; other arguments as for `discover`."""
    items: dict[str, Any] = {}
    for entry in sorted(_entry_points().select(group=group), key=lambda entry: (_package(entry), entry.name)):
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:  # third-party modules can raise anything during import
            _leave_out(entry, f"it cannot be imported ({type(error).__name__}: {error})")
            continue
        offered = list(_offered(loaded, kind, listed_as))
        if not offered:
            wanted = (
                f"'{listed_as}' with a {kind.__name__}" if listed_as else f"subclass of {kind.__name__} with a slug"
            )
            _leave_out(entry, f"{entry.value} holds no {wanted}")
        for item in offered:
            problem = _problem(item, kind, bool(listed_as))
            if problem:
                _leave_out(entry, problem)
            elif item.slug in taken or items.get(item.slug, item) is not item:
                _leave_out(entry, f"the name '{item.slug}' is already taken; give it another slug")
            else:
                items[item.slug] = item
    return items


@functools.cache
def _entry_points() -> Any:
    from importlib.metadata import entry_points  # takes a tenth of a second, which not every importer needs

    return entry_points()


def _offered(loaded: object, kind: type, listed_as: str) -> Iterable[Any]:
    if isinstance(loaded, ModuleType):
        if listed_as:
            return _listed(loaded, listed_as)
        ours = __name__.partition(".")[0]
        return [item for item in _classes(loaded, kind) if item.__module__.partition(".")[0] != ours]
    return _several(loaded)


def _classes(module: ModuleType, kind: type) -> list[Any]:
    classes = [item for _, item in inspect.getmembers(module, inspect.isclass)]
    return [item for item in classes if issubclass(item, kind) and "slug" in vars(item)]


def _listed(module: ModuleType, name: str) -> Iterable[Any]:
    return _several(getattr(module, name, ()))


def _several(value: object) -> Iterable[Any]:
    return value if isinstance(value, (tuple, list)) else [value]


def _problem(item: object, kind: type, is_instance: bool) -> str:
    if not (isinstance(item, kind) if is_instance else inspect.isclass(item) and issubclass(item, kind)):
        return f"it is a {type(item).__name__}, not a {kind.__name__}"
    slug = getattr(item, "slug", None)
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        return f"its slug must be letters, digits, '_', '-' and '/', got {slug!r}"
    return ""


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _leave_out(entry: EntryPoint, reason: str) -> None:
    _log.warning("Ignored '%s' of the installed package %s (%s): %s", entry.name, _package(entry), entry.group, reason)
