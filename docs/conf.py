"""Sphinx configuration."""

import importlib.metadata

project = "sfumato"
release = importlib.metadata.version("sfumato")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "sfumato"
exclude_patterns = ["_build"]
napoleon_custom_sections = ["Privacy"]
suppress_warnings = ["ref.python"]  # parameter types such as n_features are not links
