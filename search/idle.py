"""Settings that nothing would use because of others, outside training: a new search is refused with them.

One that began with an idle setting is not: nothing would be gained. `search.recipes` has those of training.
"""

from __future__ import annotations

from search.config import SearchConfig
from search.teacher import WORD
from workers.settings import DataSettings, LimitSettings

OF_PICTURES = ("folder", "huggingface", "webdataset")
"""Sources whose images are files that may be damaged one by one."""


def check(config: SearchConfig) -> None:
    """Raises UsageError naming the setting, and what makes it useless."""
    data, search, limits = config.data, config.search, config.limits
    if data.max_bad != DataSettings.max_bad and data.source not in OF_PICTURES:
        text = f"source {data.source!r} holds no files that are decoded one by one; only {_listed(OF_PICTURES)} do"
        raise config.error("data.max_bad", f"{text}; remove it")
    if search.engine == "inline" and search.workers not in ("auto", 1):
        text = f"{search.workers}: engine inline does one job at a time; remove it, or set search.engine: ray"
        raise config.error("search.workers", text)
    if limits.step_seconds != LimitSettings.step_seconds and limits.step_seconds > limits.job_seconds:
        text = f"{limits.step_seconds:g} is never reached, because job_seconds ends a job after {limits.job_seconds:g}"
        raise config.error("limits.step_seconds", f"{text}; lower it, or raise limits.job_seconds")


def check_names(config: SearchConfig) -> None:
    """Raises UsageError for a baseline that `show NAME CANDIDATE` could not tell from a candidate or the teacher."""
    for name in config.baselines or {}:
        if name.isdecimal():
            text = f"{name!r} is how a candidate is named; put a letter into it"
        elif name == WORD:
            text = f"{name!r} is how the network is named that others learn from; choose another name"
        else:
            continue
        raise config.error(f"baselines.{name}", text)


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
