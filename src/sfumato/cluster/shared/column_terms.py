"""Terms of clusters of sparse rows: what every estimator asks last, if a share of the budget is set aside."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.budget import Step
from sfumato.curator import Questions, active_sensitivity
from sfumato.domain.partitions import Partition
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError
from sfumato.public.models import Model
from sfumato.public.models.column_terms import ColumnTerms

TERMS = "column terms"  # name of the step
TERMS_SHARE = Fraction(1, 6)  # of the budget, for profiles="auto", as for profiles of named columns
MOST_SUMS = 2**27  # of all columns in all clusters: each takes some 40 bytes


def terms_share(profiles: Any, describe: Any) -> Fraction:
    """Share of the budget for terms, from the parameters of an estimator."""
    if describe is not None:
        raise ParameterError("`describe` must be None for sparse rows: their terms tell what is in a cluster")
    return TERMS_SHARE if profiles == "auto" else Fraction(str(profiles))


def terms_steps(sparse: Sparse) -> tuple[Step, ...]:
    """Steps that `find_terms` asks, with shares that sum to 1."""
    return (Step(TERMS, 1, sensitivity=active_sensitivity(int(sparse.max_active))),)


def check_room(sparse: Sparse, n_clusters: int) -> None:
    """Raise if the sums of all columns in all clusters would not fit into memory."""
    assert sparse.n_columns is not None
    if n_clusters * sparse.n_columns > MOST_SUMS:
        raise ParameterError(
            f"the terms of {n_clusters} clusters in {sparse.n_columns} columns need more memory than is "
            f"allowed ({MOST_SUMS} sums). Use profiles=0 for none, or join columns by a public hash"
        )


def find_terms(curator: Questions, partition: Partition, sparse: Sparse) -> ColumnTerms:
    """Ask for the means of the clusters in all columns.

    Parameters
    ----------
    curator : Questions
        Its plan must have the steps of `terms_steps`.
    partition : Partition
        The released clusters.
    sparse : Sparse
        With its number of columns.

    Privacy
    -------
    One noisy table of sums. What stands out is decided by the noisy sums. Proof: docs/proofs/sparse.md.
    """
    noisy = curator.active_sums(TERMS, partition, sparse)
    return ColumnTerms.of(noisy.sizes, noisy.sums, noisy.size_std, noisy.sum_std, sparse.feature_names)


def sparse_attributes(model: Model, terms: ColumnTerms | None) -> dict[str, Any]:
    """Fitted attributes of an estimator of sparse rows, with centres in all columns if there are terms."""
    found = dict(model.attributes())
    for name in ("cluster_centers", "cluster_center_stds"):
        if name in found:
            found[name.replace("cluster", "sketched")] = found.pop(name)
    if terms is None:
        return found
    found["column_terms"] = terms
    found["top_terms"] = [[term.name for term in terms.top(j)] for j in range(terms.n_clusters)]
    if "sketched_centers" in found:
        found["cluster_centers"] = terms.centers()
        found["cluster_center_stds"] = np.broadcast_to(terms.stds[:, None], found["cluster_centers"].shape)
    return found
