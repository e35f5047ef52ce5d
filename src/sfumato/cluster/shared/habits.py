"""What people expect of a scikit-learn clusterer: distances, scores, probabilities.

All of it describes rows that the caller holds, like `predict`. It costs no budget, is not private and enters
no release. Only `inertia_` is computed from released values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.curator import holder
from sfumato.curator.tables import as_numbers
from sfumato.domain import FloatArray
from sfumato.domain.arrays import checked
from sfumato.domain.constraints import whole
from sfumato.public.cell_costs import CellCost
from sfumato.public.cells import CellSynopsis
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.mixtures.mixture import Mixture
from sfumato.release import Release


class Unavailable:
    """An attribute that a class does not have, and what to use instead. `hasattr` says no.

    Parameters
    ----------
    why : str
        After the name of the class and of the attribute.
    """

    def __init__(self, why: str) -> None:
        self.why = why
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no `{self.name}`: {self.why}")


_NO_CENTRES = "its clusters have no centres to measure distances from"
_NO_INERTIA = "nothing was released that tells it. Use -score(X) for rows that you hold, if there is a score"


class Habits:
    """What only some clusterers have, for the others: an error that says what to use."""

    transform: Any = Unavailable(f"{_NO_CENTRES}. Use predict(X)")
    fit_transform: Any = Unavailable(f"{_NO_CENTRES}. Use fit(X).predict(X)")
    score: Any = Unavailable(f"{_NO_CENTRES}. Compare labels with `sfumato.metrics`")
    predict_proba: Any = Unavailable("its clusters are not a mixture. Use predict(X), or `DPMoG`")
    score_samples: Any = Unavailable("its clusters are not a mixture. Use `DPMoG`")
    inertia_: Any = Unavailable(_NO_INERTIA)
    inertia_std_: Any = Unavailable(_NO_INERTIA)


class CentreHabits(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Distances from centres, for methods whose clusters are centres."""

    release_: Release
    _again: Callable[..., Self]  # of `PrivateClusterer`

    def transform(self, X: ArrayLike) -> FloatArray:
        """Distance of each row from each centre. Spends nothing. Not private.

        Distances are in measured units: with ``scale="bounds"``, a step across the bounds of a column is 1.
        Rows that a fit would leave out have NaN.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, n_clusters)
        """
        check_is_fitted(self, "release_")
        centers = _centers_of(self.release_)
        return _of_rows(self, X, _measured(self.release_, partial(_distances, centers)), len(centers))

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Minus the sum of squared distances of rows to their nearest centres. Spends nothing. Not private.

        The larger, the better, as everywhere in scikit-learn. Distances are those of `transform`. Rows that a
        fit would leave out do not count.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        check_is_fitted(self, "release_")
        centers = _centers_of(self.release_)
        distances = _measured(self.release_, partial(_distances, centers))
        costs = _of_rows(self, X, lambda rows: distances(rows).min(axis=1)[:, None] ** 2, 1)
        return -float(np.nansum(costs))

    def at(self, n_clusters: int) -> Self:
        """Return a fitted copy with another number of clusters, from the same released cells. Spends nothing.

        The released number gives the released clusters. Others are computed from the cells alone, so their
        centres are less accurate. Profiles are left out.

        Parameters
        ----------
        n_clusters : int
            At most the number of cells.
        """
        check_is_fitted(self, "release_")
        whole()("n_clusters", n_clusters)
        model = self.release_.at(int(n_clusters)).model
        return self if model is self.release_.model else self._again(model, n_clusters=int(n_clusters))

    @property
    def inertia_(self) -> float:
        """Estimated sum of squared distances of the training rows to their centres, from released cells.

        Distances are those of `transform`. See ``inertia_std_`` for its error, and `docs/how_many.md`.
        """
        return _cell_inertia(self).value

    @property
    def inertia_std_(self) -> float:
        """Standard deviation of the error of ``inertia_``."""
        return _cell_inertia(self).std

    @property
    def _n_features_out(self) -> int:
        return len(_centers_of(self.release_))


class GridHabits(CentreHabits):
    """The same, for methods that release a grid of counts: it tells the inertia, too."""

    @property
    def inertia_(self) -> float:
        """Estimated sum of squared distances of the training rows to their centres, from the noisy grid.

        Distances are those of `transform`. It is unbiased but for the width of a cell, and may even be
        negative if noise hides it: see ``inertia_std_``. Both are post-processing of the release.
        """
        return _inertia(self)[0]

    @property
    def inertia_std_(self) -> float:
        """Standard deviation of the error of ``inertia_``, from noise and from the width of a cell."""
        return _inertia(self)[1]


class MixtureHabits:
    """Probabilities, for methods whose clusters are components of a mixture."""

    release_: Release

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each component for each row. Spends nothing. Not private.

        Rows that a fit would leave out have NaN.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        check_is_fitted(self, "release_")
        mixture = _mixture_of(self.release_)
        return _of_rows(self, X, _measured(self.release_, mixture.responsibilities), mixture.n_components)

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Logarithm of the density at each row, in the units of the data. Spends nothing. Not private.

        Rows that a fit would leave out have NaN.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "release_")
        mixture, steps = _mixture_of(self.release_), self.release_.domain.measure.step
        shift = float(np.log(np.array(steps)).sum()) if steps else 0.0
        densities = _measured(self.release_, mixture.log_density)
        return _of_rows(self, X, lambda rows: densities(rows)[:, None] - shift, 1)[:, 0]

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Mean of `score_samples` over the rows that a fit would use; 0 if there are none. Not private.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        found = self.score_samples(X)
        used = found[~np.isnan(found)]
        return float(used.mean()) if len(used) else 0.0


class CovarianceHabits(CentreHabits):
    """Distances from centres and, with ``covariances=True``, probabilities. The model is then a mixture.

    `predict` then names the most probable component, which need not be the nearest centre.
    """

    covariances: bool

    @property
    def predict_proba(self) -> Callable[[ArrayLike], FloatArray]:
        """As of `DPMoG`, with ``covariances=True``."""
        self._check_mixture("predict_proba")
        return partial(MixtureHabits.predict_proba, cast(MixtureHabits, self))

    @property
    def score_samples(self) -> Callable[[ArrayLike], FloatArray]:
        """As of `DPMoG`, with ``covariances=True``."""
        self._check_mixture("score_samples")
        return partial(MixtureHabits.score_samples, cast(MixtureHabits, self))

    def _check_mixture(self, name: str) -> None:
        if not self.covariances:
            kind = type(self).__name__
            raise AttributeError(f"{kind} has no `{name}`: use `covariances=True`, or `DPMoG`, for a mixture")


def _of_rows(
    estimator: Any, X: Any, compute: Callable[[FloatArray], FloatArray], n_values: int
) -> FloatArray:
    """Numbers for rows that the caller holds, checked like those of `predict`."""
    release: Release = estimator.release_
    if release.reading is not None:
        return holder.values(X, release.reading, release.domain, compute, n_values)
    missing: Literal["error", "drop"] = "error" if estimator.missing == "error" else "drop"
    if release.sparse is not None:
        return holder.values_of_sparse(X, release.sparse, missing, release.domain, compute, n_values)
    options = {"reset": False, "ensure_min_samples": 0, "dtype": np.float64, "order": "C"}
    table = X if estimator.missing == "error" else as_numbers(X)
    rows = checked(lambda: validate_data(estimator, table, ensure_all_finite=False, **options))
    return holder.values_of_rows(rows, missing, release.domain, compute, n_values)


def _measured(
    release: Release, compute: Callable[[FloatArray], FloatArray]
) -> Callable[[FloatArray], FloatArray]:
    """The same computation for rows in the units of the data."""
    return lambda rows: compute(release.domain.measure.of(rows))


def _centers_of(release: Release) -> FloatArray:
    """Centres in measured units."""
    centres = getattr(release.measured_model, "centres", None)
    if centres is None:
        raise AttributeError(f"{release.method} released no centres. Use predict(X)")
    return np.asarray(centres.cluster_centers)


def _mixture_of(release: Release) -> Mixture:
    return cast(Mixture, release.measured_model.mixture)  # type: ignore[attr-defined]


def _distances(centers: FloatArray, rows: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):  # rows far outside the bounds overflow
        return np.asarray(cdist(rows, centers))


def _cell_inertia(estimator: Any) -> CellCost:
    """Cost of the released centres, as the released cells show it."""
    model = getattr(vars(estimator).get("release_"), "model", None)
    cells: CellSynopsis | None = getattr(model, "cells", None)
    if model is None or cells is None:
        raise AttributeError(f"{type(estimator).__name__} has no `inertia_`: {_NO_INERTIA}")
    return cells.cost(model.cluster_centers)


def _inertia(estimator: Any) -> tuple[float, float]:
    """Inertia and the standard deviation of its error, from the noisy counts of a grid.

    Noise has mean zero, so counts that may be negative give an unbiased sum; possible counts would not. Rows
    are taken to be spread evenly within a cell. They may as well all be in its middle or in its corners.
    """
    check_is_fitted(estimator, "release_")
    model = estimator.release_.measured_model
    synopsis: GridSynopsis = model.synopsis
    squares = _distances(model.cluster_centers, synopsis.grid.centers()).min(axis=1) ** 2
    widths = (np.array(synopsis.grid.high) - np.array(synopsis.grid.low)) / np.array(synopsis.grid.shape)
    within = synopsis.rows_estimate() * float((widths**2).sum()) / 12
    noise = synopsis.noise_std * float(np.linalg.norm(squares))
    return float(synopsis.noisy_counts @ squares) + within, float(np.hypot(noise, within))
