"""Measurements behind BENCHMARKS.md. Run ``python -m benchmarks --help``."""
