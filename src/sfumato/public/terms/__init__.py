"""Terms: which words set the clusters of a release apart. Post-processing of released counts."""

from sfumato.public.terms.terms import Term, Terms

__all__ = ["Term", "Terms"]
