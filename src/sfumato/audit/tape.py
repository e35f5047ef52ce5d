"""Record what a curator answers about one table, and give the same answers about its neighbour.

The exact values behind each answer are kept on both tables: how far they are apart is what one unit really
costs. An audit reads made-up tables, so nothing here is private.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from sfumato.budget import PricedPlan, Record, Sensitivity
from sfumato.curator import joint, tables
from sfumato.curator.answers import Noisy, NoisyLevels, NoisyTerms
from sfumato.curator.curator import Curator, Law
from sfumato.curator.joint import JointCurator
from sfumato.domain import Domain, IntArray
from sfumato.private.aggregates.limbs import LIMB_BITS, carried
from sfumato.private.engines.base import Engine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.mechanisms.selection import exponential, permute_and_flip
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram
from sfumato.progress import progress
from sfumato.release import Release

T = TypeVar("T")
Exact: TypeAlias = IntArray | Mapping[Any, int]
Run: TypeAlias = Callable[[Any], Any]

SAMPLERS = {"discrete Laplace": discrete_laplace, "discrete Gaussian": discrete_gaussian}
NOT_THE_NOISE = "step {!r}: the answer is not the exact value with noise of the recorded scale"
MORE_ENTRIES = "step {!r}: more entries may change than the plan pays for"
OTHER_ANSWER = "{}: the answer depends on the table beyond its noise"
OTHER_QUESTION = "step {!r} is asked on one table and {!r} on the other"


class DivergedError(Exception):
    """The same answers led to other questions."""


class Answer(NamedTuple):
    """One use of a mechanism on one table."""

    record: Record
    exact: Exact  # what noise was added to; of values that are not public, by value
    released: Any
    threshold: int | None = None  # that values which are not public must reach


class Tape:
    """Answers of a run, in order. With a tape to play, its answers are given again.

    Parameters
    ----------
    played : Tape, optional
    opened : callable, optional
        Called with the plan when a table is opened, before any row is read.
    """

    def __init__(
        self, played: Tape | None = None, opened: Callable[[PricedPlan], Sequence[str]] = lambda plan: ()
    ) -> None:
        self.played, self.opened = played, opened
        self.declared: list[Record] = []
        self.answers: list[Answer] = []
        self.given: list[Any] = []  # to the questions of estimators
        self.complaints: list[str] = []

    def exchange(self, record: Record, exact: Exact, released: T, threshold: int | None = None) -> T:
        """Note an answer, and return it; in a second run, return that of the first."""
        if self.played is not None:
            place = len(self.answers)
            before = self.played.answers[place] if place < len(self.played.answers) else None
            if before is None or (before.record.step, _form(before.exact)) != (record.step, _form(exact)):
                raise DivergedError(OTHER_QUESTION.format(before and before.record.step, record.step))
            released = before.released
        self.answers.append(Answer(record, exact, released, threshold))
        return released

    def give(self, question: str, answer: Any) -> None:
        """Note what an estimator sees; in a second run, compare it with that of the first."""
        place = len(self.given)
        self.given.append(answer)
        if self.played is not None and not same(answer, self.played.given[place]):
            self.complaints.append(OTHER_ANSWER.format(question))


def _form(exact: Exact) -> tuple[int, ...] | None:
    """Shape of a vector; values that are not public have none that is."""
    return exact.shape if isinstance(exact, np.ndarray) else None


class MeteredCurator(Curator):
    """A curator that notes exact values and checks that its noise is what its records say.

    The noise of a seeded run is drawn twice, the second time here, from a copy of the random bits.
    """

    _tape: Tape  # of the run that is watched

    def __init__(self, engine: Engine, domain: Domain, plan: PricedPlan, entropy: Entropy) -> None:
        super().__init__(engine, domain, plan, entropy)
        self._tape.complaints += self._tape.opened(plan)

    def _declare(self, step: str, sensitivity: Sensitivity, *, selection: bool) -> Record:
        record = super()._declare(step, sensitivity, selection=selection)
        self._tape.declared.append(record)
        paid = self.plan.nominal(self.plan[step]).sensitivity
        if record.sensitivity.coordinates > paid.coordinates:
            self._tape.complaints.append(MORE_ENTRIES.format(step))
        return record

    def _noisy(self, record: Record, raw: IntArray) -> Noisy:
        bits, exact = deepcopy(self._entropy), raw.copy()
        found = super()._noisy(record, raw)
        noise = SAMPLERS[record.mechanism](record.scale, raw.size, bits).reshape(raw.shape)
        self._check(record, found.values, exact + noise)
        return Noisy(self._tape.exchange(record, exact, found.values), record)

    def _noisy_limbs(self, record: Record, raw: IntArray) -> Noisy:
        bits, (low, high) = deepcopy(self._entropy), raw.copy()
        found = super()._noisy_limbs(record, raw)
        noise = SAMPLERS[record.mechanism](record.scale, low.size, bits).reshape(low.shape)
        self._check(record, found.values, carried(np.stack([low + noise, high])))
        return Noisy(self._tape.exchange(record, _entries(low, high), found.values), record)

    def _choose(self, record: Record, raw_scores: IntArray) -> int:
        bits, exact = deepcopy(self._entropy), raw_scores.copy()
        found = super()._choose(record, raw_scores)
        choose = exponential if record.mechanism == "exponential" else permute_and_flip
        self._check(record, found, choose(exact, 1 / record.scale, bits))
        return self._tape.exchange(record, exact, found)

    def _passing(self, raw_cells: IntArray, raw_counts: IntArray, law: Law) -> tuple[IntArray, IntArray]:
        bits, cells, counts = deepcopy(self._entropy), raw_cells.copy(), raw_counts.copy()
        found, record = super()._passing(raw_cells, raw_counts, law), self._records[-1]
        self._check(record, found, sparse_histogram(cells, counts, *law, bits))
        return self._tape.exchange(record, _by_value(cells, counts), found)

    def levels(self, step: str) -> NoisyLevels:
        """Values of columns; on the tape by column and value."""
        bits, raw = deepcopy(self._entropy), self._engine.count()  # type: ignore[attr-defined]
        texts, counts = raw.by_column(np.arange(len(raw.counts)), raw.counts)
        exact = {
            (column, text): int(count)
            for column, of_column in enumerate(zip(texts, counts, strict=True))
            for text, count in zip(*of_column, strict=True)
        }
        found = super().levels(step)
        passing = _passing(raw.counts, found.record, found.threshold, bits)
        self._check(found.record, (found.texts, found.counts), raw.by_column(*passing))
        return self._given(step, self._tape.exchange(found.record, exact, found, found.threshold))

    def terms(self, step: str) -> NoisyTerms:
        """Terms of texts; on the tape by term."""
        bits, (texts, weights) = deepcopy(self._entropy), self._texts(step).weights()
        exact, found = _by_value(texts.to_pylist(), weights), super().terms(step)
        passing, noisy = _passing(weights, found.record, found.threshold, bits)
        expected = tuple(texts.take(pa.array(passing)).to_pylist()), noisy
        self._check(found.record, (found.terms, found.weights), expected)
        return self._given(step, self._tape.exchange(found.record, exact, found, found.threshold))

    def _check(self, record: Record, found: Any, expected: Any) -> None:
        if self._tape.played is None and not same(found, expected):
            self._tape.complaints.append(NOT_THE_NOISE.format(record.step))

    def _given(self, question: str, answer: T) -> T:
        self._tape.give(question, answer)
        return answer


def _noted(name: str) -> Callable[..., Any]:
    asked = getattr(Curator, name)

    def question(self: MeteredCurator, step: str, *arguments: Any, **options: Any) -> Any:
        return self._given(f"{name}({step!r})", asked(self, step, *arguments, **options))

    return question


for _name in ("count", "cells", "sparse_cells", "profiles", "histograms", "distances"):
    setattr(MeteredCurator, _name, _noted(_name))
for _name in ("sums", "active_sums", "moments", "nearest", "nearest_distance"):
    setattr(MeteredCurator, _name, _noted(_name))
for _name in ("splits", "select", "term_counts", "terms_per_person"):
    setattr(MeteredCurator, _name, _noted(_name))


def _entries(low: IntArray, high: IntArray) -> IntArray:
    """Exact sums in two limbs as one integer each, of any size."""
    return low if not high.any() else low.astype(object) + (high.astype(object) << LIMB_BITS)


def _passing(raw: IntArray, record: Record, threshold: int, bits: Entropy) -> tuple[IntArray, IntArray]:
    noisy = raw + SAMPLERS[record.mechanism](record.scale, raw.size, bits)
    passing = np.flatnonzero(noisy >= threshold)
    return passing, noisy[passing]


def _by_value(values: Sequence[Any] | IntArray, counts: IntArray) -> dict[Any, int]:
    return dict(zip(map(_plain, values), map(int, counts), strict=True))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


class Seen(NamedTuple):
    """What everybody sees of a run: its result, its error, and what it says on the way."""

    result: Any
    failure: Exception | None
    said: Mapping[str, Any]


def watched(run: Run, table: Any, tape: Tape) -> Seen:
    """Run something on a table, with every curator on a tape.

    A joint curator asks its questions again in each round. On the tape is what it draws, once.
    """
    text, steps, logs = io.StringIO(), [], _Logs()
    result, failure = None, None
    with contextlib.ExitStack() as around:
        metered = type("MeteredCurator", (MeteredCurator,), {"_tape": tape})
        around.enter_context(patch.object(tables, "Curator", metered))
        metered_joint = type("MeteredJointCurator", (JointCurator, metered), {})
        around.enter_context(patch.object(joint, "JointCurator", metered_joint))
        warned = around.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        around.enter_context(contextlib.redirect_stdout(text))
        around.enter_context(contextlib.redirect_stderr(text))
        around.enter_context(progress(lambda step, share: steps.append((step, share))))
        around.enter_context(logs.heard())
        try:
            result = run(table)
        except DivergedError:
            raise
        except Exception as error:
            failure = error
    messages = [(one.category.__name__, str(one.message)) for one in warned]
    said = {"the error": repr(failure), "the output": text.getvalue(), "the progress": steps}
    return Seen(result, failure, said | {"a warning": messages, "a log": logs.messages})


class _Logs(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=logging.NOTSET)
        self.messages: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append((record.name, record.getMessage()))

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        library = logging.getLogger("sfumato")
        level = library.level
        library.addHandler(self)
        library.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            library.setLevel(level)
            library.removeHandler(self)


def public(result: Any) -> Any:
    """What a result makes known: of an estimator, its fitted attributes; of a release, all but its time."""
    if isinstance(result, Release):
        return replace(result, created="").to_dict()
    attributes = getattr(result, "__dict__", {})
    fitted = [name for name in attributes if name.endswith("_") and not name.startswith("_")]
    return {name: public(attributes[name]) for name in fitted} if fitted else result


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal to the last bit, arrays within them too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype == object:
            return all(map(same, one.ravel(), other.ravel()))
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or one != one)
