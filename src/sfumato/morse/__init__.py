"""Gaussian mixtures merged through their saddles into clusters of any shape. Post-processing only."""

from sfumato.morse.mixture import Mixture
from sfumato.morse.tree import MorseTree, merge_tree

__all__ = ["Mixture", "MorseTree", "merge_tree"]
