"""`paretovit`: every command, registered by name, and how errors and exit codes leave the program.

Exit codes: 0 ok, 1 failure, 2 usage or config, 3 no feasible candidate, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from search import hints
from search.cli import (
    asking,
    dashboard,
    db,
    delete,
    doctor,
    export,
    init,
    look,
    measure,
    pick,
    plan,
    run,
    serve,
    space,
    submit,
    validate,
    watch,
)
from search.cli.command import Command, Group
from search.cli.packages import check_packages
from search.errors import UserError

INTERRUPTED = 130

app = typer.Typer(
    name="paretovit",
    cls=Group,
    help="Searches vision transformers for the best trade-offs between accuracy and measured cost.",
    context_settings={"auto_envvar_prefix": "PARETOVIT", "help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    plugins: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="MODULE",
            envvar="PARETOVIT_PLUGINS",
            help="Let a module of yours add models and families; may be repeated.",
        ),
    ] = None,
) -> None:
    del debug  # read by main(), which takes it anywhere on the line
    if plugins:
        os.environ["PARETOVIT_PLUGINS"] = ",".join(plugins)
        source = context.get_parameter_source("plugins")
        if source is not None and source.name == "COMMANDLINE":
            hints.remember_plugins(plugins)
    if show_version:
        from importlib.metadata import version

        typer.echo(f"paretovit {version('paretovit')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("init", cls=Command)(init.init)
app.command("validate", cls=Command)(validate.validate)
app.command("plan", cls=Command)(plan.plan)
app.command("run", cls=Command)(run.run)
app.command("resume", cls=Command)(run.resume)
app.command("pause", cls=Command)(asking.pause)
app.command("stop", cls=Command)(asking.stop)
app.command("watch", cls=Command)(watch.watch)
app.command("submit", cls=Command)(submit.submit)
app.command("serve", cls=Command)(serve.serve)
app.command("status", cls=Command)(look.status)
app.command("front", cls=Command)(look.front)
app.command("show", cls=Command)(look.show)
app.command("pick", cls=Command)(pick.pick)
app.command("report", cls=Command)(look.report)
app.command("dashboard", cls=Command)(dashboard.dashboard)
app.command("export", cls=Command)(export.export)
app.command("verify", cls=Command)(export.verify)
app.command("space", cls=Command)(space.space)
app.command("measure", cls=Command)(measure.measure)
app.command("delete", cls=Command)(delete.delete)
app.command("doctor", cls=Command)(doctor.doctor)
app.add_typer(db.app, name="db")


@hints.one_command_line()
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line (None: this process's) and returns its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments or os.environ.get("PARETOVIT_DEBUG", "0") not in ("", "0", "false")
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        check_packages()
        code = app(arguments, prog_name="paretovit", standalone_mode=False)
    except UserError as error:
        if debug:
            raise
        return _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        if debug:
            raise
        return _fail(_usage(error), error.exit_code)
    except typer.Abort:
        return _fail("cancelled", INTERRUPTED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if debug:
            raise
        where = str(error.filename or "the system")
        return _fail(f"{where if len(where) <= 200 else where[:60] + '...'}: {error.strerror or error}", 1)
    return code if isinstance(code, int) else 0


def script() -> NoReturn:
    """The installed command: `main`, and out."""
    leave(main())


def leave(code: int) -> NoReturn:
    """Ends this process."""
    if "ray" in sys.modules:
        # Taking torch and Ray apart takes seconds, and has stood still for over a minute on a loaded machine.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "paretovit"
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    return f"{message}\nsee: {command} --help"


def _fail(message: str, code: int) -> int:
    print(f"paretovit: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    script()
