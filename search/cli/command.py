"""Variables of the environment that options can be set by. docs/cli.md tells the rule, so that no help repeats it."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

_NONE = ("--version",)
"""Forgotten in the environment, it would stand in for every command."""


class Command(TyperCommand):
    """Its options can be set by PARETOVIT_COMMAND_OPTION, unless they name a variable themselves."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _name_variables(self, ctx)
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """The same for a command that has others."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _name_variables(self, ctx)
        return super().parse_args(ctx, args)


def _name_variables(command: Any, ctx: Any) -> None:
    for option in command.params:
        if isinstance(option, TyperOption):
            option.show_envvar = option.allow_from_autoenv = False
            if option.envvar is None and option.opts[0] not in _NONE:
                name = option.opts[0].strip("-").replace("-", "_").upper()
                option.envvar = f"{ctx.auto_envvar_prefix}_{name}"
