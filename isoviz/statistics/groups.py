"""Groups that do not differ significantly: the letters in a table (compact letter display)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase


def letters(count: int, apart: Iterable[tuple[int, int]], order: Sequence[int] | None = None) -> list[str]:
    """Letters of items 0 … count − 1: two share a letter exactly if they do not differ significantly.

    Each letter is a maximal set of items of which no two differ significantly; an item may have several letters.

    Args:
        apart: the pairs that differ significantly.
        order: items in the order in which they receive letters, for example from the highest mean; by number if None.
    """
    import networkx

    graph = networkx.complete_graph(count)
    graph.remove_edges_from(apart)
    place = {item: at for at, item in enumerate(order if order is not None else range(count))}
    sets = sorted(sorted(place[item] for item in clique) for clique in networkx.find_cliques(graph))
    letters_of = [""] * count
    by_place = {at: item for item, at in place.items()}
    for number, members in enumerate(sets):
        for at in members:
            letters_of[by_place[at]] += letter(number)
    return letters_of


def letter(number: int) -> str:
    """a … z, then a1 … z1, a2 …, so that no combination of letters is ambiguous."""
    cycle, at = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[at] + (str(cycle) if cycle else "")
