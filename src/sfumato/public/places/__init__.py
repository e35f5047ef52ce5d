"""Choosing among public places: coverings and medoids."""
