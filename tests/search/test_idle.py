"""Settings that others make useless: a new search is refused with them, one that has begun is not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from search import config, idle, validate
from search.errors import UsageError

DIGITS = {"name": "hunt", "data": {"source": "digits"}}
RESNET = {"model": "resnet10t"}

IDLE: dict[str, tuple[dict[str, Any], str]] = {
    "bad images where none are decoded": (
        {"data": {"source": "digits", "max_bad": 5}},
        "data.max_bad: source 'digits' holds no files that are decoded one by one",
    ),
    "workers of an engine that has one": (
        {"search": {"engine": "inline", "workers": 4}},
        "search.workers: 4: engine inline does one job at a time",
    ),
    "a silence that no job lasts": (
        {"limits": {"step_seconds": 500, "job_seconds": 100}},
        "limits.step_seconds: 500 is never reached, because job_seconds ends a job after 100",
    ),
    "a baseline called as a candidate is": (
        {"baselines": {"1": RESNET}},
        "baselines.1: '1' is how a candidate",
    ),
    "a baseline called as the teacher is": (
        {"baselines": {"teacher": RESNET}},
        "baselines.teacher: 'teacher' is how the network is named that others learn from",
    ),
}


def refused(**sections: Any) -> str:
    with pytest.raises(UsageError) as caught:
        validate.check_new(config.from_dict(DIGITS | sections), time.time())
    return str(caught.value)


@pytest.mark.parametrize("mistake", IDLE)
def test_a_new_search_is_refused_naming_the_setting_and_why(mistake: str) -> None:
    sections, expected = IDLE[mistake]
    assert expected in refused(**sections)


@pytest.mark.parametrize("mistake", IDLE)
def test_a_search_that_has_begun_goes_on(mistake: str) -> None:
    validate.check(config.from_stored(DIGITS | IDLE[mistake][0]), time.time())


@pytest.mark.parametrize(
    "sections",
    [
        {"data": {"source": "folder", "path": "/x", "max_bad": 5}},
        {"search": {"engine": "inline", "workers": 1}},
        {"search": {"workers": 4}},
        {"limits": {"job_seconds": 100}},
        {"limits": {"step_seconds": 100, "job_seconds": 100}},
        {"baselines": {"resnet-1": RESNET, "teacher2": RESNET}},
    ],
)
def test_what_is_used_is_taken(sections: dict[str, Any]) -> None:
    given = config.from_dict(DIGITS | sections)
    idle.check(given)
    idle.check_names(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PARETOVIT_JOB_MEMORY_MB", "abc"),
        ("PARETOVIT_JOB_MEMORY_MB", "-1"),
        ("PARETOVIT_JOB_MEMORY_MB", "0"),
        ("PARETOVIT_CACHE_GB", "abc"),
        ("PARETOVIT_CACHE_GB", "-1"),
        ("PARETOVIT_CACHE_GB", "nan"),
        ("PARETOVIT_CACHE", "/dev/null/x"),
        ("PARETOVIT_RUNTIME_DIR", "/dev/null"),
    ],
)
def test_a_variable_that_says_nothing_is_refused_before_it_is_needed(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert refused().startswith(f"{name}={value}: ")
