"""The commands put together, and the exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ..scale.allocator import share_freed_memory
from .denoise import denoise
from .extras import demo, paper
from .interrupt import STOPPED, stopping_soon
from .messages import PartlyDone, ReaderGone, any_error, collected_warnings, complain, echo_text, note, usage_error
from .options import PlainCommand, PlainGroup
from .restore import restore
from .select import compare, select
from .streams import accept_any_text, discard_stdout, flush_stdout, open_closed_streams
from .view import view

app = typer.Typer(
    cls=PlainGroup,
    add_completion=True,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Denoise and restore files, and choose thresholds, from the noisy data alone.",
    epilog="An error is one line on standard error. Exit code 2: nothing is written; 1: some of the work is done.",
)
# A command is a function in a file of its own.
for _command in (denoise, restore, view, select, compare, demo, paper):
    app.command(_command.__name__, cls=PlainCommand)(_command)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Print the version, or the help if no command is given."""
    if version:
        from importlib.metadata import version as installed

        echo_text(f"scorethresh {installed('scorethresh')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        echo_text(context.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code: 0 if all is done, 1 if some of the work is done and some failed, 2 if nothing is written, 130 if
        the command was stopped.
    """
    open_closed_streams()
    accept_any_text()
    share_freed_memory()
    given = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]  # accepted after the command as well
    try:
        with stopping_soon(), collected_warnings() as notes:
            code = app(args=given, prog_name="scorethresh", standalone_mode=False)
        if code == STOPPED:  # typer turns Ctrl-C into this code, or into an exception
            raise KeyboardInterrupt
        flush_stdout()
        for message in notes:
            note(message)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("stopped\n")
        return STOPPED
    except ReaderGone:
        discard_stdout()
        return 0
    except Exception as error:
        if debug:
            raise
        complain(usage_error(error, given) if hasattr(error, "format_message") else any_error(error))
        discard_stdout()
        return 1 if isinstance(error, PartlyDone) else 2
    return code if isinstance(code, int) else 0
