"""Fits over the tables of several holders, who send integers to a curator and keep their rows."""

from sfumato.holders.masks import masked
from sfumato.holders.rounds import combine, fold, release, settle, start
from sfumato.holders.transcript import State, Transcript

__all__ = ["State", "Transcript", "combine", "fold", "masked", "release", "settle", "start"]
