"""Gaussian mixtures merged through their saddles into clusters of any shape. Post-processing only."""

from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.morse_tree import MorseTree, merge_tree

__all__ = ["Mixture", "MorseTree", "merge_tree"]
