"""The two files of a joint fit: the transcript, which is public, and the states, which are not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, get_args

import numpy as np

from sfumato.curator.joint import Form, Noise
from sfumato.domain import IntArray
from sfumato.errors import ReleaseError
from sfumato.holders.declaration import Declaration
from sfumato.public.models import decode, encode
from sfumato.release import read_sealed, write_sealed

TRANSCRIPT, STATE = "sfumato transcript", "sfumato state"
FORMAT_VERSION = 1
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Transcript:
    """A joint fit so far: what was declared, and all that was released. Public, unless it is seeded.

    Parameters
    ----------
    declaration : Declaration
    rounds : tuple of tuples of int arrays
        What each round released.
    question : str or None
        SHA-256 of the question of the next round. None if all is answered.
    noise : dict, optional
        Of a seeded fit, where its noise goes on. Whoever knows it can remove the noise to come.
    """

    declaration: Declaration
    rounds: tuple[tuple[IntArray, ...], ...] = ()
    question: str | None = None
    noise: Noise = None

    @property
    def fit(self) -> str:
        """Identifier of the fit."""
        return self.declaration.fit

    @property
    def holders(self) -> tuple[str, ...]:
        """Names of the holders."""
        return self.declaration.holders

    @property
    def round(self) -> int:
        """Number of the round that is asked for, from 0."""
        return len(self.rounds)

    @property
    def is_complete(self) -> bool:
        """Whether all questions are answered, so that the release follows."""
        return self.question is None

    def digest(self, n_rounds: int | None = None) -> str:
        """SHA-256 of the declaration and of what the first rounds released."""
        found = hashlib.sha256(self.fit.encode())
        for released in self.rounds[:n_rounds]:
            found.update(json.dumps(encode(released)).encode())
        return found.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file."""
        content = {
            "format": TRANSCRIPT,
            "version": FORMAT_VERSION,
            "declaration": self.declaration.to_dict(),
            "rounds": encode(self.rounds),
            "question": self.question,
            "noise": self.noise,
        }
        return write_sealed(path, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Transcript:
        """Read a file that `save` wrote."""
        content = read_sealed(path, TRANSCRIPT, FORMAT_VERSION)

        def made() -> Transcript:
            rounds = decode(content["rounds"])
            if not all(_is_integers(found) for released in rounds for found in released):
                raise ReleaseError("answers must be integers")
            question, noise = content["question"], content["noise"]
            if not isinstance(question, str | None) or not isinstance(noise, dict | None):
                raise ReleaseError("`question` or `noise` is of another type")
            return cls(Declaration.from_dict(content["declaration"]), rounds, question, noise)

        return _read(path, made)


@dataclass(frozen=True, eq=False)
class State:
    """What one holder counted in one round, exactly: integers before noise. Only the curator may see it.

    Parameters
    ----------
    fit : str
        Identifier of the fit.
    holder : str
    round : int
    transcript : str
        SHA-256 of the transcript that the holder saw.
    question : str
        SHA-256 of the question that it folded.
    values : int array
    form : {"integers", "limbs", "cells"}
        How the curator merges the states of all holders.
    pads : dict
        Of a masked state: for each other holder, a tag of the mask that it shares with this one.
    """

    fit: str
    holder: str
    round: int
    transcript: str
    question: str
    values: IntArray = field(repr=False)
    form: Form
    pads: dict[str, str] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file. Only its owner may read it."""
        content = {
            "format": STATE,
            "version": FORMAT_VERSION,
            **vars(self),
            "values": encode(self.values),
        }
        return write_sealed(path, content, mode=0o600)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read a file that `save` wrote."""
        content = read_sealed(path, STATE, FORMAT_VERSION)

        def made() -> State:
            parts = {name: value for name, value in content.items() if name not in ("format", "version")}
            state = cls(**parts | {"values": decode(parts["values"])})
            texts = (state.fit, state.holder, state.transcript, state.question)
            if not all(isinstance(text, str) for text in (*texts, *state.pads.values())):
                raise ReleaseError("a name is of another type")
            if state.form not in get_args(Form):
                raise ReleaseError("its form is not known")
            if type(state.round) is not int or not _is_integers(state.values):
                raise ReleaseError("a number is of another type")
            return state

        return _read(path, made)


def _is_integers(found: object) -> bool:
    return isinstance(found, np.ndarray) and found.dtype == np.int64


def _read(path: str | os.PathLike[str], made: Callable[[], T]) -> T:
    try:
        return made()
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ReleaseError(f"{path} is not complete: {error}") from None
