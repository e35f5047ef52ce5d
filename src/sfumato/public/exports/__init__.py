"""Clusters in formats of other programs: GeoJSON, GeoParquet, CSV. Released values only."""
