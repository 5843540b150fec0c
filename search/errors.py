"""Errors that a user can cause: shown as one or two lines, never as a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend. The message names the file, key, value and remedy; exit code 1."""

    exit_code = 1


class UsageError(UserError):
    """The command line or the config is wrong, and nothing was written; exit code 2."""

    exit_code = 2


class NoFeasibleCandidate(UserError):
    """The search holds no finished candidate within its constraints; exit code 3."""

    exit_code = 3
