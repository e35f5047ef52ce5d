"""Before anything is spent: which method to use, and what a budget will buy. Reads no rows."""

from sfumato.planner.columns import ColumnError
from sfumato.planner.forecast import Forecast
from sfumato.planner.plans import budget_for, forecast, plan
from sfumato.planner.recommendation import Recommendation, recommend

__all__ = ["ColumnError", "Forecast", "Recommendation", "budget_for", "forecast", "plan", "recommend"]
