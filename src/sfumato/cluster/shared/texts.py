"""What every clusterer can say about texts beside its rows: `describe_terms`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sfumato.budget import Budget, Ledger, PricedPlan, PrivacyStatement, calibrate
from sfumato.cluster.shared.parameters import DEFAULT_EPSILON, Number, as_budget, as_seed
from sfumato.cluster.shared.terms import MAX_TERMS, TermsAsked, find_terms
from sfumato.curator import Table, run
from sfumato.curator.terms import open_terms
from sfumato.domain.words import Tokens, words_by
from sfumato.errors import GuaranteeWarning, ParameterError
from sfumato.public.terms import Terms
from sfumato.release import Release

_AGAIN = "terms were released before: this costs as much again, and the release states all of it"


class DescribesTexts:
    """Terms that set clusters apart, from texts beside the rows. A clusterer has it from here."""

    release_: Release
    privacy_: PrivacyStatement
    terms_: Terms | None
    ledger: Ledger | None
    random_state: int | None

    def describe_terms(
        self,
        texts: Any,
        vocabulary: Any = "private",
        *,
        epsilon: Number | None = DEFAULT_EPSILON,
        delta: Number = 0.0,
        rho: Number | None = None,
        max_terms: int = MAX_TERMS,
        top: int = 10,
        tokens: Any = "words",
        stop_words: Any = "english",
        X: Any = None,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> Terms:
        """Release the terms of texts that set each cluster apart, for a budget of their own.

        The cost comes on top of that of the fit: it is charged to the same ledger before any text is read,
        and from then on `privacy_` and `release_` state both together. Each call costs anew.

        Parameters
        ----------
        texts : sequence of length n
            A text for each row of the table, in the order of the rows. What is no text is empty.
        vocabulary : "private" or sequence of str
            Public terms to count, as `tokens` writes them. "private" finds terms that many people use; this
            needs `delta`.
        epsilon, delta, rho : float
            Budget for the terms alone, as for a fit.
        max_terms : int
            Maximum number of terms that a person counts for. A smaller number is chosen privately if it is
            better.
        top : int
            Maximum number of terms to show per cluster.
        tokens : {"words", "pairs"} or callable
            How a text is split: "words" in lower case, "pairs" also two words in a row. A callable must
            compute the terms of one text from that text alone, whatever texts it saw before.
        stop_words : "english", sequence of str or None
            Public words to leave out. A callable leaves out its own.
        X : table, optional
            The rows of `texts`. By default those of the fit, if this object still holds them.
        ledger : Ledger, optional
            By default that of the fit.
        random_state : int, optional
            Seed for experiments. By default one that follows from that of the fit.

        Returns
        -------
        Terms
            Also in `terms_` and in ``release_.terms``.

        Privacy
        -------
        A person counts for at most `max_terms` pairs of cluster and term, and in at most
        `max_rows_per_unit` clusters, by a rule of that person's texts alone. A term that one person alone
        uses is found with a probability of at most half of delta. Proof: docs/proofs/terms.md.
        """
        check_is_fitted(self, "release_")
        asked, split = TermsAsked.of(vocabulary, max_terms, top), words_by(tokens, stop_words)
        table = self._open_texts(texts, X, split)
        priced = self._priced_terms(asked, as_budget(epsilon, delta, rho))
        if self.terms_ is not None:
            warnings.warn(_AGAIN, GuaranteeWarning, stacklevel=2)
        found, _, privacy = run(
            table,
            priced,
            partial(find_terms, asked, self._max_clusters),
            method=f"{type(self).__name__}.describe_terms",
            ledger=self.ledger if ledger is None else ledger,
            seed=_seed_after(self.random_state) if random_state is None else as_seed(random_state),
        )
        self.terms_, self.privacy_ = found, privacy.after(self.privacy_)
        self.release_ = replace(self.release_, terms=found, privacy=self.privacy_)
        return found

    def _open_texts(self, texts: Any, X: Any, split: Tokens) -> Table:
        """Texts and the clusters of their rows, for the curator. Reads no text."""
        rows = vars(self).get("_table") if X is None else X
        if rows is None:
            raise ParameterError("`X` must be given: this object no longer holds the rows of its fit")
        release, partition = self.release_, self.release_.measured_model.partition
        if not partition.n_cells:
            raise ParameterError("terms need clusters, and the fit found none")
        return open_terms(texts, rows, release.reading, release.domain, partition, split)

    def _priced_terms(self, asked: TermsAsked, budget: Budget) -> PricedPlan:
        """What terms cost. Raises if that cannot be added to what the fit cost."""
        priced = calibrate(asked.plan(self._max_clusters), budget)
        unit = self.release_.domain.unit
        PrivacyStatement(priced.budget, unit, (), False).after(self.privacy_)
        return priced

    @property
    def _max_clusters(self) -> int:
        """Maximum number of clusters that a person counts in."""
        release = self.release_
        return min(release.domain.unit.max_rows, release.measured_model.partition.n_cells)


def _seed_after(random_state: int | None) -> int | None:
    """Seed of what is asked after a fit with a seed: another one, or the noise would repeat."""
    seed = as_seed(random_state)
    return None if seed is None else seed + 2**32
