"""Mergeable integer summaries of rows, each with a proved sensitivity.

An engine folds an aggregate over rows: ``zero()``, then ``add(state, block)`` per block, then ``merge(a,
b)``. Both work in place: use what they return. States are integers and merging is exactly associative, so the
result does not depend on how rows are split. There is no noise and no budget here.
"""
