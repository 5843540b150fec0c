"""Errors of a worker, told apart by whose fault they are."""

from __future__ import annotations


class CandidateError(Exception):
    """The candidate's own fault (it returned NaN, the loss is not finite, ...): the job fails, without a retry.

    The message is the reason that users read: one line.
    """


class TooLargeError(CandidateError):
    """More memory would be needed than there is for it here."""


class MachineError(RuntimeError):
    """The fault of the machine that the job runs on, or of its set-up: the job may succeed elsewhere or later."""


class DeviceError(MachineError):
    """A device that is not here, or that cannot be locked or used. The message names what there is."""


class CheckpointError(MachineError):
    """A checkpoint that is missing, has changed, or is of something else. The message names the file."""


class TeacherError(MachineError):
    """The checkpoint of a teacher that is missing, has changed, or is of something else. The message names it."""


class WeightsError(MachineError):
    """Pretrained weights that are not here or not to be opened. Trying again changes nothing; the message names the
    file."""


class ExportError(RuntimeError):
    """A model that cannot be exported, or an exported folder that is not as it should be. The message names what."""
