"""Cells of a comparison: a value of ours beside those of a paper or a peer, and which is better."""

import math
from typing import Any, NamedTuple

ERRORS = 2.0  # standard errors of the difference within which two means are equal
TIMES = 0.1  # relative: what a time may differ without being another
NO_DATA, NOT_MEASURED = "no data", "not measured"
Row = dict[str, Any]


class Value(NamedTuple):
    """A mean, its standard error, and by how much printing has rounded it."""

    mean: float
    error: float = 0.0
    rounding: float = 0.0


def verdict(theirs: Value, ours: Value, *, is_higher_better: bool = False) -> str:
    gain = (ours.mean - theirs.mean) * (1 if is_higher_better else -1)
    if abs(gain) <= theirs.rounding + ours.rounding + ERRORS * math.hypot(theirs.error, ours.error):
        return "equal"
    return "better" if gain > 0 else "worse"


def row(
    data: str,
    setting: str,
    printed: dict[str, Value],
    ours: dict[str, Value],
    *,
    missing: str = NOT_MEASURED,
    is_higher_better: bool = False,
    shift: float = 0.0,
) -> Row:
    """Compare the best of ours with each printed value, after adding `shift` to ours; without ours, say why."""
    shown = {method: value.mean for method, value in printed.items()}
    common = {"data": data, "setting": setting, "printed": shown}
    if not ours:
        return common | {"ours": None, "which": missing, "verdicts": dict.fromkeys(printed, missing)}
    best = (max if is_higher_better else min)(ours, key=lambda method: ours[method].mean)
    level = ours[best]._replace(mean=ours[best].mean + shift)
    verdicts = {m: verdict(value, level, is_higher_better=is_higher_better) for m, value in printed.items()}
    return common | {"ours": ours[best].mean, "which": best, "verdicts": verdicts, "shift": shift}


def standard(score: list[float], n_runs: int) -> Value:
    mean, deviation = score
    return Value(mean, deviation / math.sqrt(n_runs))
