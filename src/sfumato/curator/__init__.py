"""The waist between private rows and public values."""

from sfumato.curator.answers import (
    Noisy,
    NoisyActive,
    NoisyCells,
    NoisyLevels,
    NoisyMeans,
    NoisyMoments,
    NoisySplits,
    NoisySums,
    NoisyTerms,
)
from sfumato.curator.curator import Curator
from sfumato.curator.questions import (
    MomentShape,
    Questions,
    SplitRule,
    active_sensitivity,
    cover_sensitivity,
    histograms_sensitivity,
    levels_sensitivity,
    moments_sensitivity,
    nearest_distance_sensitivity,
    nearest_sensitivity,
    profiles_sensitivity,
    sums_sensitivity,
    swap_sensitivity,
    term_counts_sensitivity,
    terms_sensitivity,
)
from sfumato.curator.run import Run, run
from sfumato.curator.tables import Table, open_people, open_table

__all__ = ["Curator", "MomentShape", "Noisy", "NoisyActive", "NoisyCells", "NoisyLevels", "NoisyMeans"]
__all__ += ["NoisyMoments", "NoisySplits", "NoisySums", "Questions", "Run", "SplitRule", "Table"]
__all__ += ["active_sensitivity", "cover_sensitivity"]
__all__ += ["histograms_sensitivity", "levels_sensitivity", "moments_sensitivity"]
__all__ += ["nearest_distance_sensitivity", "nearest_sensitivity", "open_people", "open_table", "run"]
__all__ += ["profiles_sensitivity", "sums_sensitivity", "swap_sensitivity", "term_counts_sensitivity"]
__all__ += ["NoisyTerms", "terms_sensitivity"]
