"""Attacks on private algorithms: lower bounds on what a release really reveals about one unit."""

from sfumato.audit.attack import AuditResult, audit, audit_estimator, compare
from sfumato.audit.features import features
from sfumato.audit.limits import lower_bound
from sfumato.audit.pairs import PAIRS, Pair

__all__ = ["PAIRS", "AuditResult", "Pair", "audit", "audit_estimator", "compare", "features", "lower_bound"]
