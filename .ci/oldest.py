"""Constraints that choose the oldest versions `pyproject.toml` allows, for `make test-oldest`."""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("cli", "report", "spark")
# Packages that only others ask for. Newer ones warn of what these old versions use, and warnings are errors.
OF_THE_SAME_AGE = ("click==8.2.1", "pyparsing==3.1.4")


def oldest(project: dict) -> list[str]:
    """The lower bound of each requirement, as a constraint."""
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
    wanted += [requirement for extra in EXTRAS for requirement in extras[extra]]
    found = [re.fullmatch(r"([\w-]+)>=([\d.]+)", one) for one in wanted if not one.startswith("sfumato[")]
    return sorted({f"{one[1]}=={one[2]}" for one in found}) + list(OF_THE_SAME_AGE)


if __name__ == "__main__":
    content = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    sys.stdout.write("\n".join(oldest(tomllib.loads(content))) + "\n")
