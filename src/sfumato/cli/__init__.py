"""The command ``sfumato``: one file per group of commands.

These files import only typer at the top, and the library inside functions: help, version and completion
answer at once.
"""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command with the arguments of the process, and exit."""
    try:
        from sfumato.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write("error: the command needs typer: pip install 'sfumato[cli]'\n")
        raise SystemExit(70) from None
    app(prog_name="sfumato")
    raise SystemExit(0)
