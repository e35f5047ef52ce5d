"""Attacks on private algorithms: lower bounds on what a release really reveals about one unit."""

from sfumato.audit.attack import AuditResult, audit, audit_estimator, compare
from sfumato.audit.features import features
from sfumato.audit.limits import lower_bound
from sfumato.audit.meter import MeterResult, meter, meter_estimator
from sfumato.audit.pairs import PAIRS, Pair
from sfumato.audit.search import worst_neighbour
from sfumato.audit.step_losses import StepLoss

__all__ = [
    "PAIRS",
    "AuditResult",
    "MeterResult",
    "Pair",
    "StepLoss",
    "audit",
    "audit_estimator",
    "compare",
    "features",
    "lower_bound",
    "meter",
    "meter_estimator",
    "worst_neighbour",
]
