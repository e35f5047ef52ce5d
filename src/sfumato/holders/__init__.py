"""Fits over the tables of several holders, who send integers to a curator and keep their rows."""

from sfumato.holders.masks import masked
from sfumato.holders.rounds import combine, declare, fold, release, settle
from sfumato.holders.transcript import State, Transcript

__all__ = ["State", "Transcript", "combine", "declare", "fold", "masked", "release", "settle"]
