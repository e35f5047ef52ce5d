"""Masks that cancel: the curator sees the sum of all states, and none of them alone.

The place for secure aggregation. Each pair of holders shares a secret that the curator does not know. Both
stretch it to as many random integers as the state has; one adds them, the other subtracts them, modulo 2^64
(sums that are kept in two limbs: modulo 2^126).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sfumato.curator.joint import shifted
from sfumato.errors import ParameterError
from sfumato.holders.transcript import State

LEAST_SECRET = 32  # bytes: as many as SHA-256 has, beyond any guessing


def masked(state: State, secrets: Mapping[str, bytes]) -> State:
    """A state whose integers are hidden from the curator until all states are added up.

    Parameters
    ----------
    state : State
        Of an aggregate whose states add up, and not masked before.
    secrets : mapping of str to bytes
        For each other holder, the secret of at least 32 random bytes that it shares with this one. One
        secret serves a whole fit, and many fits: masks depend on the fit and the round, too.

    Returns
    -------
    State

    Privacy
    -------
    One secret alone makes the integers uniform and independent of the rows for everybody who
    does not know it: a one-time pad, as far as SHAKE-256 cannot be told from random bits. So the curator, and
    the curator together with all holders but two, learn the sum of the states of the others and nothing else
    about them. Public: the shape. Not hidden: the sum of all states. Proof: docs/proofs/holders.md.
    """
    if state.form == "cells":
        raise ParameterError(
            "a masked state must be of integers that are added up place by place; this one lists cells. "
            "Choose a method that counts on public cells, or send the state as it is to a trusted curator"
        )
    if state.pads:
        raise ParameterError("a state must be masked once, got one that is")
    if state.holder in secrets or not secrets:
        raise ParameterError("`secrets` must have an entry for each other holder")
    if any(len(secret) < LEAST_SECRET for secret in secrets.values()):
        raise ParameterError(f"`secrets` must have at least {LEAST_SECRET} bytes each")
    values = state.values
    for other, secret in secrets.items():
        random = np.frombuffer(_stretched("mask", state, secret, values.nbytes), dtype="<i8")
        random = random.astype(np.int64).reshape(values.shape)
        values = shifted(values, random, state.form, back=state.holder > other)
    tags = {other: _stretched("tag", state, secret, 32).hex() for other, secret in secrets.items()}
    return replace(state, values=values, pads=tags)


def check_pads(states: Sequence[State]) -> None:
    """Raise unless all masks cancel: every pair of holders has the same, or nobody has any."""
    tags = {(state.holder, other): tag for state in states for other, tag in state.pads.items()}
    if not tags:
        return
    names = [state.holder for state in states]
    pairs = {(one, other) for one in names for other in names if one != other}
    for one, other in sorted(pairs | tags.keys()):
        if tags.get((one, other), "") != tags.get((other, one)):
            raise ParameterError(
                f"the masks of {one!r} and {other!r} must cancel, and do not: both must share one secret. "
                "Nothing was released"
            )


def _stretched(purpose: str, state: State, secret: bytes, n_bytes: int) -> bytes:
    """Bytes that only who knows the secret can tell from random ones: others for each round and purpose."""
    text = f"sfumato {purpose}\n{state.fit}\n{state.round}\n{state.transcript}\n"
    return hashlib.shake_256(text.encode() + secret).digest(n_bytes)
