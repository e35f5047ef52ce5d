"""Sphinx configuration."""

import importlib.metadata
import os
import sys
from pathlib import Path

from sfumato.datasets import data_home

project = "sfumato"
release = importlib.metadata.version("sfumato")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "sfumato"
exclude_patterns = ["_build", "jupyter_execute"]
napoleon_custom_sections = ["Privacy"]
suppress_warnings = ["ref.python"]  # parameter types such as n_features are not links

# The tutorials run on public data, which not everybody has: docs/tutorials/index.md says so.
home = data_home()
nb_execution_mode = "force" if home and (home / "MANIFEST.json").is_file() else "off"
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # for `sfumato`
nb_execution_in_temp = True  # they write a ledger, a release and a report
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove-warn"  # a library's warning stops the build
nb_merge_streams = True
