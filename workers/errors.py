"""Errors of a worker, told apart by whose fault they are."""

from __future__ import annotations


class CandidateError(Exception):
    """The candidate's own fault (it returned NaN, the loss is not finite, ...): the job fails and is not retried.

    The message is the reason that users read: one line.
    """


class DeviceError(RuntimeError):
    """A device that is not here, or that cannot be locked or used. The message names what there is."""
