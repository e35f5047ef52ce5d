"""Profiles: what the clusters of a release are like, column by column. Post-processing of released counts."""

from sfumato.public.profiles.estimates import Bars, Contrast, Direction, Estimate
from sfumato.public.profiles.profiles import Profiles

__all__ = ["Bars", "Contrast", "Direction", "Estimate", "Profiles"]
