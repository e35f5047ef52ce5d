"""Groups of a released mixture: their colours, and their number in words."""

from __future__ import annotations

from typing import cast

import numpy as np

from sfumato.plot.style import Source, counted, distinct_colours, part_of, released
from sfumato.public.models import GroupedModel
from sfumato.public.models.groups import Groups
from sfumato.release import Release


def mixture_of(source: Source) -> tuple[Release, GroupedModel]:
    """Return the release and its model, which must have a mixture."""
    release = released(source)
    part_of(release, "groups", "a mixture, as DPMoG and MorseClustering release")
    return release, cast(GroupedModel, release.model)


def group_colours(groups: Groups) -> list[str]:
    """Return a colour for each group. Neighbours differ."""
    scale = np.maximum(np.ptp(groups.means, axis=0), groups.stds.max(axis=0))
    means, stds = groups.means / scale, groups.stds / scale
    return distinct_colours(np.stack([means - stds, means + stds], axis=1), means)


def in_words(groups: Groups) -> str:
    """Return the number of clusters and components in words."""
    components = counted(len(groups.labels), "component")
    return f"{counted(len(groups.sizes), 'cluster')} of {components}" if groups.is_joined else components
