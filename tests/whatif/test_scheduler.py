"""Who is computed next: moves before slow work, viewers in turn, outdated questions dropped, one answer for one key."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError

import pytest

from isoviz.whatif import scheduler
from isoviz.whatif.scheduler import Rank, Scheduler

PATIENCE = 60


class Gate:
    """Work that says when it began and ends when it is let."""

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(PATIENCE)
        return "gate"


@pytest.fixture
def one_core() -> Iterator[Scheduler]:
    """Two threads, one of them for slow work."""
    one = Scheduler()
    one.cores = 1
    yield one
    one.close()


def hold(one: Scheduler, rank: Rank, number: int = 0) -> Gate:
    gate = Gate()
    one.submit(f"holder {number} of {rank}", f"gate {number} of {rank}", gate, rank)
    assert gate.begun.wait(PATIENCE)
    return gate


def noted(order: list[str], name: str) -> Callable[[], str]:
    def work() -> str:
        order.append(name)
        return name

    return work


def test_a_move_does_not_wait_for_slow_work(one_core: Scheduler) -> None:
    gate = hold(one_core, Rank.FOLLOW)
    assert one_core.submit("me", "a", lambda: "a", Rank.MOVE).result(PATIENCE) == "a"
    assert not one_core.submit("you", "b", lambda: "b", Rank.BUILD).done()  # slow too: one core, one at a time
    gate.open.set()
    assert one_core.submit("you", "b", lambda: "b", Rank.BUILD).result(PATIENCE) == "b"


def test_moves_come_first_then_builds_then_what_follows_each_in_turn(one_core: Scheduler) -> None:
    slow, move = hold(one_core, Rank.FOLLOW), hold(one_core, Rank.MOVE)  # both threads are taken
    order: list[str] = []
    requests = [
        one_core.submit(f"{rank.name} {number}", f"{rank.name} {number}", noted(order, f"{rank.name} {number}"), rank)
        for rank in reversed(Rank)
        for number in range(3)
    ]
    slow.open.set()
    move.open.set()
    for future in requests:
        future.result(PATIENCE)
    for rank in Rank:
        assert [name for name in order if name.startswith(rank.name)] == [
            f"{rank.name} {number}" for number in range(3)
        ]
    slow_order = [name for name in order if not name.startswith("MOVE")]
    assert slow_order == sorted(slow_order)  # BUILD before FOLLOW


def test_the_newest_question_of_a_viewer_counts(one_core: Scheduler) -> None:
    gate = hold(one_core, Rank.FOLLOW)
    first = one_core.submit("me", "a", lambda: "a")
    shared = one_core.submit("you", "a", lambda: "never computed")
    second = one_core.submit("me", "b", lambda: "b")
    third = one_core.submit("me", "c", lambda: "c")
    assert shared is first  # one answer per key, kept because it is still needed
    assert second.cancelled()
    gate.open.set()
    assert (first.result(PATIENCE), third.result(PATIENCE)) == ("a", "c")


def test_an_outdated_question_ends_after_its_stage(one_core: Scheduler) -> None:
    gate, reached = Gate(), []

    def stages() -> Generator[None, None, str]:
        gate()
        yield
        reached.append("second stage")
        return "late"

    first = one_core.submit("me", "a", stages)
    assert gate.begun.wait(PATIENCE)
    second = one_core.submit("me", "b", lambda: "b")
    gate.open.set()
    assert second.result(PATIENCE) == "b"
    assert first.cancelled() and reached == []


def test_constant_moving_does_not_starve_what_follows(one_core: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "HEAD_START", dict.fromkeys(Rank, 0.0))
    gates = [hold(one_core, Rank.MOVE, number) for number in range(2)]  # both threads are taken
    order: list[str] = []
    requests = [one_core.submit("me", "slow", noted(order, "slow"))]
    requests += [one_core.submit(f"mover {n}", f"move {n}", noted(order, "move"), Rank.MOVE) for n in range(20)]
    gates[0].open.set()
    for future in requests:
        future.result(PATIENCE)
    assert order[0] == "slow" and len(order) == 21
    gates[1].open.set()


def test_an_error_reaches_every_waiter_and_is_retried(one_core: Scheduler) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        one_core.submit("me", "a", fail).result(PATIENCE)
    assert one_core.submit("me", "a", lambda: "yes").result(PATIENCE) == "yes"


def test_closing_cancels_what_waits_and_the_next_question_opens_it_again(one_core: Scheduler) -> None:
    gate = hold(one_core, Rank.FOLLOW)
    waiting = one_core.submit("me", "a", lambda: "a")
    threading.Timer(0.1, gate.open.set).start()
    one_core.close()
    assert waiting.cancelled()
    assert one_core.submit("me", "a", lambda: "a").result(PATIENCE) == "a"


def test_a_question_whose_viewers_have_left_is_dropped_before_its_next_stage(one_core: Scheduler) -> None:
    here, began, go_on = {"me", "you"}, threading.Event(), threading.Event()
    done: list[int] = []

    def stages() -> Generator[None, None, str]:
        for stage in range(100):
            done.append(stage)
            began.set()
            assert go_on.wait(PATIENCE)
            yield
        return "for no one"

    asked = [one_core.submit(name, "a", stages, Rank.FOLLOW, is_here=lambda name=name: name in here) for name in here]
    assert began.wait(PATIENCE)
    here.remove("me")
    later = one_core.submit("third", "b", lambda: "b", Rank.FOLLOW, is_here=lambda: False)
    here.remove("you")
    go_on.set()
    with pytest.raises(CancelledError):
        asked[0].result(PATIENCE)
    with pytest.raises(CancelledError):
        later.result(PATIENCE)
    assert done == [0] and not one_core._questions
