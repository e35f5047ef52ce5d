"""Budgets, plans, calibration, composition and the ledger. Numbers only: no rows, no randomness."""

from sfumato.budget.amounts import Budget
from sfumato.budget.batch import Batch, PlannedFit
from sfumato.budget.calibration import calibrate
from sfumato.budget.costs import epsilon_at, pure_epsilon, total_rho
from sfumato.budget.ledger import Ledger
from sfumato.budget.ledger_lines import Charge
from sfumato.budget.plan import Plan, PricedPlan, PricedStep, Step, composed
from sfumato.budget.records import Record, Sensitivity
from sfumato.budget.statement import PrivacyStatement

__all__ = [
    "Batch",
    "Budget",
    "Charge",
    "Ledger",
    "Plan",
    "PlannedFit",
    "PricedPlan",
    "PricedStep",
    "PrivacyStatement",
    "Record",
]
__all__ += ["Sensitivity", "Step", "calibrate", "composed", "epsilon_at", "pure_epsilon", "total_rho"]
