"""Density on a noisy histogram: neighbourhoods, level sets and the spans they form. Post-processing only."""
