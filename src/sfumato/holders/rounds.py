"""A fit over the tables of several holders, round by round."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sfumato.budget import Ledger
from sfumato.budget.ledger_lines import Charge
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.parameters import as_seed
from sfumato.curator.joint import AskedError, JointTable, Question, Script, first_noise, unfit
from sfumato.domain import IntArray, Unit
from sfumato.domain.columns import names_columns
from sfumato.errors import LedgerError, ParameterError, ReleaseError
from sfumato.holders.declaration import Declaration, check_supported, declared
from sfumato.holders.masks import check_pads
from sfumato.holders.transcript import State, Transcript
from sfumato.release import Release


def declare(
    estimator: PrivateClusterer,
    holders: Sequence[str],
    columns: int | Sequence[str] | None = None,
    *,
    max_holders_per_unit: int | None = None,
) -> Transcript:
    """Declare a joint fit, and charge the curator's ledger for all of it.

    Parameters
    ----------
    estimator : PrivateClusterer
        With its budget, its bounds and the curator's `ledger`. It is not fitted.
    holders : sequence of str
        Names of the holders: all must take part in every round.
    columns : int or sequence of str, optional
        Number of columns of arrays, or names of all columns of files. Not needed if `bounds` name them.
    max_holders_per_unit : int, optional
        Maximum number of holders that have rows of one person. By default all may. It is a promise about the
        tables: if it is broken, so is the guarantee. Each holder uses at most ``max_rows_per_unit //
        max_holders_per_unit`` rows of a person. Without `unit`, every row is at one holder.

    Returns
    -------
    Transcript
        What the holders get, see `fold`.

    Privacy
    -------
    Unit and guarantee: those of the fit. Spends: its whole budget, charged here. Public inputs: everything.
    Not private: what holders send to the curator, see `fold`. Proof: docs/proofs/holders.md.

    Examples
    --------
    >>> from sfumato import DPM, holders
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(20_000, 5, 3, random_state=0)
    >>> tables = {"north": X[:5_000], "south": X[5_000:]}
    >>> transcript = holders.declare(DPM(epsilon=1.0, bounds=(-1, 1), random_state=0), [*tables], columns=3)
    >>> states = {}
    >>> while not transcript.is_complete:
    ...     for name, table in tables.items():  # each holder on its own machine
    ...         states[name] = holders.fold(transcript, table, name, last=states.get(name))
    ...     transcript = holders.combine(transcript, states.values())
    >>> holders.release(transcript).model.attributes()["n_clusters"]
    5
    """
    check_supported(estimator)
    if max_holders_per_unit is None:
        max_holders_per_unit = 1 if estimator.unit is None else len(holders)
    named = tuple(columns) if isinstance(columns, Sequence) else columns
    method = declared(estimator)
    declaration = Declaration(method, named, tuple(holders), max_holders_per_unit, token_hex(16))
    _check_cap(estimator.unit, estimator.max_rows_per_unit, max_holders_per_unit)
    asked = _next(declaration, _no_rows(declaration), Script(()))
    if asked is None:
        raise ParameterError(f"a joint fit must ask something, and {type(estimator).__name__} does not")
    noise = first_noise(as_seed(estimator.random_state))
    transcript = Transcript(declaration, (), asked.digest, noise)
    if estimator.ledger is not None:
        _charge(estimator.ledger, transcript, asked)
    return transcript


def fold(
    transcript: Transcript, X: Any, holder: str, *, ledger: Ledger | None = None, last: State | None = None
) -> State:
    """Fold the next question over the rows of one holder, who works out from the transcript what is asked.

    Parameters
    ----------
    transcript : Transcript
    X : table
        As for `fit`: an array, a data frame, files, or a Spark data frame.
    holder : str
        Who holds it.
    ledger : Ledger, optional
        The holder's. The whole fit is charged to it before the first fold reads a row; later rounds are free.
    last : State, optional
        What this holder sent in the round before. The transcript must go on from there.

    Returns
    -------
    State
        For the curator alone: exact integers, without noise.

    Privacy
    -------
    A state is not private. It goes to the curator, whom all holders trust with it. What the curator releases
    costs the budget of the fit, once, if every round is answered once: so a ledger that has paid for the fit
    refuses a later round without `last`, and any transcript that is not the continuation of `last`.
    """
    if holder not in transcript.holders:
        raise ParameterError(f"`holder` must be one of {', '.join(transcript.holders)}, got {holder!r}")
    if transcript.is_complete:
        raise ParameterError("the fit is complete: nothing is left to fold")
    _check_continues(transcript, holder, ledger, last)
    values: list[IntArray] = []

    def answer(question: Question, engine: Any) -> IntArray:
        if question.digest != transcript.question:
            raise ReleaseError(
                "this side comes to another question than the curator: nothing was folded. All sides must "
                "have the same versions of sfumato, NumPy and SciPy, and the same kind of processor"
            )
        if ledger is not None and _charged(ledger, transcript) is None:
            _charge(ledger, transcript, question)
        values.append(question.folded(engine))
        raise AskedError(question)

    asked = _next(transcript.declaration, X, Script(transcript.rounds, answer))
    assert asked is not None
    return State(
        fit=transcript.fit,
        holder=holder,
        round=transcript.round,
        transcript=transcript.digest(),
        question=asked.digest,
        values=values[0],
        form=asked.form,
    )


def combine(transcript: Transcript, states: Iterable[State], *, ledger: Ledger | None = None) -> Transcript:
    """Add up the states of all holders, add noise, and release the answer of one round.

    Parameters
    ----------
    transcript : Transcript
    states : iterable of State
        One of each holder, for this round. Otherwise an error is raised before any noise is drawn.
    ledger : Ledger, optional
        The curator's, which `declare` charged. The last round is noted there. A fit that was released before
        is refused.

    Returns
    -------
    Transcript
        With one more round. If it is complete, `release` makes the release of it.

    Privacy
    -------
    Releases what one curator over all rows would release, with the same noise. Combine each round once:
    two answers to one round cost more than was charged. Proof: docs/proofs/holders.md.
    """
    states = list(states)
    if transcript.is_complete:
        raise ParameterError("the fit is complete: nothing is left to combine")
    _check_all_there(transcript, states)
    check_pads(states)

    def answer(question: Question, _: Any) -> IntArray:
        if question.digest != transcript.question:
            raise ReleaseError("the transcript was made by another version of sfumato, NumPy or SciPy")
        return question.merged([state.values for state in states])

    script = Script(transcript.rounds, answer, transcript.noise)
    asked = _next(transcript.declaration, _no_rows(transcript.declaration), script)
    after = replace(
        transcript,
        rounds=(*transcript.rounds, tuple(script.drawn)),
        question=None if asked is None else asked.digest,
        noise=script.entropy.state,
    )
    if after.is_complete and ledger is not None:
        settle(after, ledger, again=False)
    return after


def release(transcript: Transcript) -> Release:
    """The release of a complete transcript: the same for everybody who computes it. Spends nothing.

    Parameters
    ----------
    transcript : Transcript
    """
    if not transcript.is_complete:
        raise ParameterError(
            f"the transcript must be complete, got one that waits for round {transcript.round}"
        )
    declaration = transcript.declaration
    script = Script(transcript.rounds, noise=transcript.noise)
    try:
        found = _fitted(declaration, _no_rows(declaration), script).release_
    except AskedError:
        raise unfit() from None
    script.check_ended()
    return found


def settle(transcript: Transcript, ledger: Ledger, *, again: bool = True) -> None:
    """Note in a ledger that a complete fit was released.

    Parameters
    ----------
    transcript : Transcript
    ledger : Ledger
    again : bool
        Whether it may have been noted before.
    """
    charge = _charged(ledger, transcript)
    if charge is None:
        raise LedgerError(f"{ledger.dataset!r} was not charged for this fit: nothing is noted")
    if charge.outcome == "released" and not again:
        raise LedgerError("this fit was released before: a second release would cost more than was charged")
    ledger.settle(charge.id, "released")


def _fitted(declaration: Declaration, X: Any, script: Script) -> PrivateClusterer:
    estimator = declaration.estimator()
    table = JointTable.of(estimator._open(X), script, declaration.max_holders_per_unit)
    estimator._fit(table, estimator._plan, estimator._cluster)
    return estimator


def _next(declaration: Declaration, X: Any, script: Script) -> Question | None:
    """The first question that nobody answers, or None if the fit comes to its end."""
    with warnings.catch_warnings():  # `release` gives them
        warnings.simplefilter("ignore")
        try:
            _fitted(declaration, X, script)
        except AskedError as asked:
            return asked.question
    return None


def _no_rows(declaration: Declaration) -> Any:
    """A table with the declared columns and no rows, from which the curator knows what to ask."""
    estimator, columns = declaration.estimator(), declaration.columns
    if isinstance(columns, int):
        return np.empty((0, columns))
    if names_columns(estimator.bounds):
        columns = (*estimator.bounds, *estimator._describing.beside)
    elif columns is None:
        raise ParameterError(
            "`columns` must be the number or the names of the columns, unless `bounds` name them"
        )
    names = dict.fromkeys([*columns, *([estimator.unit] if estimator.unit else [])])
    empty = pa.table({name: pa.nulls(0) for name in names})
    return empty if names_columns(estimator.bounds) else ds.dataset(empty)


def _check_cap(unit: str | None, max_rows: int, max_holders: int) -> None:
    if unit is not None and max_rows < max_holders:
        raise ParameterError(
            f"`max_rows_per_unit` must be at least {max_holders}, one row for each holder that may have rows "
            f"of a person, got {max_rows}. If every person is at one holder only: max_holders_per_unit=1"
        )


def _check_continues(transcript: Transcript, holder: str, ledger: Ledger | None, last: State | None) -> None:
    if last is not None and last.fit == transcript.fit:
        if last.holder != holder:
            raise ParameterError(f"`last` must be a state of {holder!r}, got one of {last.holder!r}")
        if last.round > transcript.round or last.transcript != transcript.digest(last.round):
            raise ParameterError(
                "the transcript must go on from the one that `last` answered, and does not: the curator "
                "shows two versions of a round. Nothing was folded"
            )
    elif transcript.round and ledger is not None and _charged(ledger, transcript) is not None:
        raise ParameterError(
            f"`last` must be what {holder!r} sent in the round before: without it nobody notices whether the "
            "curator asks a round twice. Nothing was folded"
        )


def _check_all_there(transcript: Transcript, states: Sequence[State]) -> None:
    got = [state.holder for state in states]
    for name in transcript.holders:
        if got.count(name) != 1:
            problem = "missing" if name not in got else "there more than once"
            raise ParameterError(
                f"the state of {name!r} is {problem}. All holders must answer each round: "
                f"{', '.join(transcript.holders)}. Nothing was released"
            )
    digest = transcript.digest()
    for state in states:
        if state.holder not in transcript.holders:
            problem = "no holder of this fit"
        elif state.fit != transcript.fit:
            problem = "of another fit"
        elif state.round != transcript.round:
            problem = f"of round {state.round}, and the transcript waits for round {transcript.round}"
        elif state.transcript != digest:
            problem = "of another transcript"
        elif state.question != transcript.question:
            problem = "of another question"
        else:
            continue
        raise ParameterError(f"the state of {state.holder!r} is {problem}. Nothing was released")


def _charged(ledger: Ledger, transcript: Transcript) -> Charge | None:
    """The charge for a fit, if there is one."""
    charges = (charge for charge in ledger.history() if isinstance(charge.plan, dict))
    return next((one for one in charges if one.plan["fit"] == transcript.fit), None)  # type: ignore[index]


def _charge(ledger: Ledger, transcript: Transcript, asked: Question) -> None:
    estimator = transcript.declaration.estimator()
    ledger.charge(
        asked.plan.budget,
        method=type(estimator).__name__,
        plan={"plan": str(asked.plan), "holders": list(transcript.holders), "fit": transcript.fit},
        seeded=transcript.noise is not None,
        unit=Unit(estimator.unit, estimator.max_rows_per_unit),
    )
