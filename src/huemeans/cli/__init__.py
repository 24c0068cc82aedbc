"""The ``huemeans`` command: data on stdout, talk on stderr, and what went wrong in the exit code.

0: done.  1: a problem was found.  2: wrong usage.  3: bad input.  4: the budget does not allow it.
5: the ledger is locked or corrupt.  Nothing computed from rows is in any of them, but for what is released.
"""

import json
import os
import sys

import click

from huemeans import __version__
from huemeans.cli.budget import budget
from huemeans.cli.compare import compare
from huemeans.cli.demo import demo
from huemeans.cli.fit import fit
from huemeans.cli.paper import paper
from huemeans.cli.shows import doctor, plan, report, verify
from huemeans.errors import BudgetExceeded, HuemeansError, LedgerError

_BAD_INPUT = 3
_REFUSED = 4
_LEDGER = 5
_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="huemeans")
def huemeans() -> None:
    """Publish the clusters of personal data under differential privacy.

    Start with 'huemeans demo', or with 'huemeans fit DATA --clusters 4 --out DIR'.
    """


for command in (demo, fit, plan, report, verify, compare, paper, budget, doctor):
    huemeans.add_command(command)


def main() -> None:
    """Run the command and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; return the exit code."""
    try:
        code = huemeans.main(args=arguments, prog_name="huemeans", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return _failed(error.exit_code, error.format_message(), arguments)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except HuemeansError as error:
        click.echo(f"huemeans: {error}", err=True)
        return _failed(_code(error), str(error), arguments)
    except OSError as error:
        words = f"{error.filename or 'a file'}: {error.strerror}."
        click.echo(f"huemeans: {words}", err=True)
        return _failed(_BAD_INPUT, words, arguments)
    except Exception as error:  # its text might quote a row
        if os.environ.get("HUEMEANS_DEBUG"):
            raise
        words = f"unexpected {type(error).__name__}. HUEMEANS_DEBUG=1 shows more; it may show rows."
        click.echo(f"huemeans: {words}", err=True)
        return _failed(_BAD_INPUT, words, arguments)
    return code if isinstance(code, int) else 0


def _failed(code: int, words: str, arguments: list[str]) -> int:
    """Tell programs on stdout, too, what went wrong; return the exit code."""
    if "--json" in arguments:
        click.echo(json.dumps({"error": {"code": code, "message": words}}))
    return code


def _code(error: HuemeansError) -> int:
    if isinstance(error, BudgetExceeded):
        return _REFUSED
    return _LEDGER if isinstance(error, LedgerError) else _BAD_INPUT
