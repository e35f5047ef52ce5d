"""The curator of a joint fit: rows stay with several holders, who fold one question at a time.

A fit asks one question after another, and each depends on earlier answers. These are public, so anybody can
run the fit again up to the first question without an answer. Until then folds are over no rows, and answers
come from the transcript. See docs/holders.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property, partial, reduce
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from sfumato.budget import PricedPlan, Record
from sfumato.curator.answers import Noisy
from sfumato.curator.curator import Curator, Law
from sfumato.curator.tables import Table
from sfumato.domain import Domain, IntArray
from sfumato.domain.columns import Columns
from sfumato.errors import ParameterError, PlanError, ReleaseError
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.aggregates.limbs import LIMB_BITS, LimbSums, carried
from sfumato.private.aggregates.mapped import Mapped
from sfumato.private.aggregates.sparse_cells import SparseCells
from sfumato.private.engines.base import Engine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.sources import Source

Form = Literal["integers", "limbs", "cells"]  # of a state: sums place by place, in two limbs, or a list
Noise: TypeAlias = dict[str, Any] | None  # where a seeded source of noise is, see `Entropy.state`


def first_noise(seed: int | None) -> Noise:
    """Where the noise of a fit begins."""
    return Entropy(seed).state


@dataclass(frozen=True, eq=False)
class Question:
    """One fold of a joint fit. All holders come to the same one.

    Parameters
    ----------
    aggregate : Aggregate
    records : tuple of Record
        What was asked so far, with the noise that this question will get.
    plan : PricedPlan
    """

    aggregate: Aggregate
    records: tuple[Record, ...]
    plan: PricedPlan

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides what is folded and how much noise it gets."""
        found = hashlib.sha256()
        for part in _parts((self.aggregate, self.records, self.plan.max_rows)):
            found.update(len(part).to_bytes(8, "big") + part)
        return found.hexdigest()

    @property
    def form(self) -> Form:
        """How states are merged. Raises if they are not numbers that add up, such as rows near a point."""
        inner = _innermost(self.aggregate)
        if isinstance(inner, SparseCells):
            return "cells"
        if isinstance(inner, LimbSums):
            return "limbs"
        if type(inner).merge is Aggregate.merge:
            return "integers"
        raise PlanError(f"a joint fit cannot ask for {type(inner).__name__}: its states do not add up")

    def folded(self, engine: Engine) -> IntArray:
        """The raw state over the rows of one holder, in the form in which it is sent. Before noise."""
        is_list, state = self.form == "cells", engine.fold(self.aggregate)
        return cast(SparseCells, _innermost(self.aggregate)).listed(state) if is_list else state

    def merged(self, states: Sequence[IntArray]) -> IntArray:
        """The raw state over the rows of all holders, from what they sent. Before noise."""
        return reduce(self.aggregate.merge, map(self._received, states))

    def _received(self, state: IntArray) -> IntArray:
        """A state of its own, as a holder sent it. It is not trusted: kernels get only the right form."""
        shape = self.aggregate.zero().shape
        if self.form == "cells":
            if state.ndim != 2 or state.shape[1] != 2:
                raise ParameterError(f"a state must have cells and counts, got the shape {state.shape}")
            return cast(SparseCells, _innermost(self.aggregate)).from_list(np.ascontiguousarray(state))
        if state.shape != shape:
            raise ParameterError(f"a state must have the shape {shape}, got {state.shape}")
        return state.copy()


def shifted(values: IntArray, random: IntArray, form: Form, *, back: bool) -> IntArray:
    """A state moved by random integers of its shape, or moved back. All states together form a group.

    Integers add up modulo 2^64. Two limbs are one integer modulo 2^126: a low limb of 62 bits and a high one
    of 64, which may wrap around. In both, merging is the addition of the group, and uniform integers give a
    uniform element of it.
    """
    if form == "integers":
        return values - random if back else values + random
    pads = random.copy()
    pads[0] = pads[0] << 64 - LIMB_BITS >> 64 - LIMB_BITS  # a low limb
    return carried(values - pads if back else values + pads)


def _innermost(aggregate: Aggregate) -> Aggregate:
    while isinstance(aggregate, Mapped):
        aggregate = aggregate.aggregate
    return aggregate


def _parts(value: Any) -> Iterator[bytes]:
    """The public numbers and names of a question, without ambiguity."""
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for part in fields(value):
            yield from _parts(getattr(value, part.name))
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield f"{value.dtype.str} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _parts(item)
    elif value is None or isinstance(value, str | int | float | Fraction):
        yield repr(value).encode()
    elif isinstance(value, np.generic):
        yield repr(value.item()).encode()
    else:
        raise PlanError(f"a joint fit cannot ask by a {type(value).__name__}")


class AskedError(Exception):
    """A fit came to a question that has no answer yet.

    Parameters
    ----------
    question : Question
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


Answer: TypeAlias = Callable[[Question, Engine], IntArray]


def refuse(question: Question, _: Engine) -> IntArray:
    """Answer no question: the fit stops at the first that the transcript does not answer."""
    raise AskedError(question)


@dataclass
class Script:
    """Released answers of the rounds so far, and who answers the next fold.

    A round is one fold and all that is released before the next one.

    Parameters
    ----------
    rounds : sequence of sequences of int arrays
    answer : callable
        Takes the question of the first fold without an answer, and the engine of this side.
    noise : dict, optional
        Where the noise of a seeded fit goes on. By default it comes from the operating system.
    """

    rounds: Sequence[Sequence[IntArray]]
    answer: Answer = refuse
    noise: InitVar[Noise] = None
    drawn: list[IntArray] = field(default_factory=list)  # what the new round released
    entropy: Entropy = field(init=False)
    _n_folds: int = 0
    _left: Iterator[IntArray] | None = field(default_factory=lambda: iter(()))  # None in the new round

    def __post_init__(self, noise: Noise) -> None:
        self.entropy = Entropy.resumed(noise)

    def fold(self, question: Question, engine: Engine) -> IntArray:
        """State of the next fold: of no rows in an old round, of the holders' rows in the new one."""
        self._check_round()
        place, self._n_folds = self._n_folds, self._n_folds + 1
        if place < len(self.rounds):
            self._left = iter(self.rounds[place])
            return question.aggregate.zero()
        if place > len(self.rounds):
            raise AskedError(question)
        self._left = None
        return self.answer(question, engine)

    def check_ended(self) -> None:
        """Raise if rounds are left at the end of a fit."""
        self._check_round()
        if self._n_folds < len(self.rounds):
            raise unfit()

    def _check_round(self) -> None:
        if self._left is not None and next(self._left, None) is not None:
            raise unfit()

    def released(self, draw: Callable[[], IntArray], fits: Callable[[IntArray], bool]) -> IntArray:
        """Answer of an old round, or a new one, with noise."""
        if self._left is None:
            self.drawn.append(draw())
            return self.drawn[-1]
        found = next(self._left, None)
        if found is None or not fits(found):
            raise unfit()
        return found


def unfit() -> ReleaseError:
    """The error for a transcript that belongs to another fit."""
    return ReleaseError("the transcript must answer what the fit asks, and does not: it was altered")


class JointCurator(Curator):
    """A curator whose folds and answers follow a script.

    Privacy
    -------
    The same as of `Curator`: what is released has the noise of the plan. Answers of old rounds are public.
    Proof: docs/proofs/holders.md.
    """

    def __init__(self, engine: Engine, domain: Domain, plan: PricedPlan, script: Script) -> None:
        super().__init__(_Asking(engine, self._ask), domain, plan, script.entropy)
        self._script = script

    def describe(self, engine: Engine) -> None:
        """Read the same rows with the values of described columns from now on."""
        super().describe(_Asking(engine, self._ask))

    def _ask(self, engine: Engine, aggregate: Aggregate) -> IntArray:
        return self._script.fold(Question(aggregate, self.records, self.plan), engine)

    def _noisy(self, record: Record, raw: IntArray) -> Noisy:
        return self._scripted(partial(super()._noisy, record, raw), record, raw)

    def _noisy_limbs(self, record: Record, raw: IntArray) -> Noisy:
        return self._scripted(partial(super()._noisy_limbs, record, raw), record, raw)

    def _scripted(self, draw: Callable[[], Noisy], record: Record, raw: IntArray) -> Noisy:
        found = self._script.released(lambda: draw().values, lambda found: found.shape == raw.shape)
        return Noisy(found, record)

    def _choose(self, record: Record, raw_scores: IntArray) -> int:
        choose = partial(super()._choose, record, raw_scores)
        found = self._script.released(
            lambda: np.array([choose()]),
            lambda found: found.shape == (1,) and 0 <= found[0] < len(raw_scores),
        )
        return int(found[0])

    def _passing(self, raw_cells: IntArray, raw_counts: IntArray, law: Law) -> tuple[IntArray, IntArray]:
        passing = partial(super()._passing, raw_cells, raw_counts, law)

        def fits(found: IntArray) -> bool:
            if found.ndim != 2 or len(found) != 2:
                return False
            cells, counts = found
            inside = not cells.size or 0 <= cells[0] <= cells[-1] < law[0]
            return bool(inside and (cells[1:] > cells[:-1]).all() and (counts >= law[-1]).all())

        cells, counts = self._script.released(lambda: np.stack(passing()), fits)
        return cells, counts


@dataclass(frozen=True, eq=False)
class _Asking:
    """An engine that leaves its folds to somebody else."""

    engine: Engine
    ask: Callable[[Engine, Aggregate], IntArray]

    @property
    def n_features(self) -> int:
        return self.engine.n_features

    def fold(self, aggregate: Aggregate) -> IntArray:
        return self.ask(self.engine, aggregate)


@dataclass(frozen=True, eq=False)
class _Later:
    """An engine that opens its table at the first fold: by then the ledger is charged."""

    n_features: int
    opened: Callable[[], Engine]

    def fold(self, aggregate: Aggregate) -> IntArray:
        return self.opened().fold(aggregate)


@dataclass(frozen=True, eq=False)
class _Held:
    """The table of one holder. Of a person's cap on rows, it takes the part of one holder."""

    source: Source
    max_holders_per_unit: int

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        unit = domain.unit
        if unit.column is not None:
            unit = replace(unit, max_rows=unit.max_rows // self.max_holders_per_unit)
        return _Later(columns.width, partial(self.source.engine, columns, replace(domain, unit=unit)))


@dataclass(frozen=True, eq=False, repr=False)
class JointTable(Table):
    """The table of one side of a joint fit, whose curator follows a script."""

    script: Script = field(kw_only=True)

    @classmethod
    def of(cls, table: Table, script: Script, max_holders_per_unit: int) -> JointTable:
        """An opened table as one side of a joint fit has it.

        Parameters
        ----------
        table : Table
        script : Script
        max_holders_per_unit : int
            Maximum number of holders that have rows of one person.
        """
        parts = {part.name: getattr(table, part.name) for part in fields(Table)}
        if table.columns is not None:
            held = _Held(cast(Source, table._rows), max_holders_per_unit)
            parts |= {"_rows": held, "_open_engine": partial(held.engine, table.columns, table.domain)}
        return cls(**parts, script=script)

    def curator(self, plan: PricedPlan, seed: int | None) -> Curator:
        """Curator over the table. Noise comes from where the script says."""
        return JointCurator(self._open_engine(), self.domain, plan, self.script)
