"""Work on several threads, which an interrupt ends without leaving a lock behind."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable, Sequence
from operator import itemgetter
from queue import SimpleQueue
from time import sleep
from typing import Any, TypeVar

T = TypeVar("T")


def on_threads(works: Sequence[Callable[[], T]], stop: Callable[[], None] = lambda: None) -> list[T]:
    """Run each work on a thread of its own, and return the results in order.

    After an interrupt such as Ctrl-C, `stop` is called and the threads are waited for before it goes on.
    `ThreadPoolExecutor` and `Thread` do not serve: an interrupt between the lines of their conditions can
    leave a lock taken, so that the process fails or waits for ever. A `SimpleQueue` is one step in C. An
    interrupt in the microseconds in which this step begins is heard only when one of the works ends.
    """
    ended: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    running: set[int] = set()
    stopped = False

    def run(place: int, work: Callable[[], T]) -> None:
        running.add(place)
        try:
            ended.put((place, None if stopped else work(), None))
        except BaseException as error:
            ended.put((place, None, error))
        running.discard(place)

    try:
        for place, work in enumerate(works):
            start_new_thread(run, (place, work))
        outcomes = sorted((ended.get() for _ in works), key=itemgetter(0))
    except BaseException:
        stopped = True
        stop()
        while running:
            sleep(0.001)
        raise
    for _, _, error in outcomes:
        if error is not None:
            raise error
    return [result for _, result, _ in outcomes]
