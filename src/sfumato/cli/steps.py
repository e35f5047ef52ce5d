"""Show the steps of a fit as they happen, with their costs: as lines, and as a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from sfumato.cli.failures import say

if TYPE_CHECKING:
    from sfumato.budget import PricedPlan
    from sfumato.progress import Listener


@contextmanager
def followed(plan: PricedPlan, *, quiet: bool) -> Iterator[None]:
    """Say on stderr which step of a plan begins and, on a terminal, how much of the plan is done."""
    from sfumato.progress import progress

    if quiet:
        yield
        return
    shown = _bar(plan) if sys.stderr.isatty() else nullcontext(_listener(plan, say))
    with shown as listener, progress(listener):
        yield


def _listener(plan: PricedPlan, write: Callable[[str], None]) -> Listener:
    """Write a line for each step when it begins."""
    costs = {
        name: f"{cost}, {mechanism}" + (f", {times} times" if times != "1" else "")
        for name, times, mechanism, _, _, cost in plan.rows()
    }

    def listen(step: str, share: float) -> None:
        if step in costs:
            write(f"{step}: {costs.pop(step)}")

    return listen


@contextmanager
def _bar(plan: PricedPlan) -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True, markup=False, highlight=False)
    write = _listener(plan, console.print)
    asked = 0
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=sum(priced.step.repeats for priced in plan.steps))

        def listen(step: str, share: float) -> None:
            nonlocal asked
            asked += share == 0
            write(step, share)
            bar.update(task, completed=asked - 1 + share, description=step)

        yield listen
