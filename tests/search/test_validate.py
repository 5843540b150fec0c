from __future__ import annotations

import os
import time

import pytest

from search import config, validate
from search.errors import UsageError

DIGITS = {"name": "hunt", "data": {"source": "digits"}}


def loaded(**sections):
    return config.from_dict(DIGITS | sections)


def test_a_checked_config_knows_its_data_space_rungs_and_deadline():
    now = time.time()
    checked = validate.check(loaded(search={"deadline": "8h"}, training={"epochs": 9}), now)
    assert checked.deadline == now + 8 * 3600
    assert checked.plan.rungs == (1, 3, 9)
    assert checked.plan.data.image_size == 8
    assert checked.plan.space.size() > 100
    assert list(checked.plan.baselines) == ["resnet"]


def test_a_stored_config_whose_deadline_has_passed_can_still_be_read():
    with pytest.raises(UsageError, match=r"search\.deadline: .* is past"):
        validate.check(loaded(search={"deadline": "2001-01-01"}), time.time())


def test_a_dry_build_builds_different_candidates_and_repeats_them_for_a_seed():
    plan = validate.check(loaded(), time.time()).plan
    built = validate.dry_build(plan, 4)
    assert len({spec.digest for spec in built.specs}) == len(built.specs) == len(built.params)
    assert min(built.params) > 0
    assert validate.dry_build(plan, 4) == built


def test_a_space_smaller_than_the_dry_build_is_built_as_far_as_it_goes():
    tiny = {"families": ["vit"], "vit": {"patch_size": [4], "depth": [1]}}
    plan = validate.check(loaded(space=tiny), time.time()).plan
    assert 1 <= len(validate.dry_build(plan, 3).specs) <= 3


@pytest.mark.parametrize(
    "spaces, key",
    [
        ({"vit": {"patch_size": [3]}}, "space.vit.patch_size: "),
        ({"families": ["swin"], "swin": {"windoww": [2]}}, "space.swin: "),
        ({"families": ["vit"], "vit": {"depth": {"low": 5, "high": 2}}}, "space.vit.depth: "),
    ],
)
def test_what_is_wrong_with_a_space_names_the_key_of_the_config(spaces, key):
    with pytest.raises(UsageError) as caught:
        validate.check(loaded(space=spaces), time.time())
    assert str(caught.value).startswith(f"stored config: {key}")


def test_baselines_have_to_build():
    wrong = {"mine": {"model": "resnet18", "args": {"no_such_argument": 1}}}
    with pytest.raises(UsageError, match=r"baselines\.mine: resnet18 with .* does not build"):
        validate.check(loaded(baselines=wrong), time.time())


def test_a_folder_to_be_made_below_a_writable_one_is_writable(tmp_path):
    assert validate.unwritable(tmp_path / "a" / "b") is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_or_a_broken_link_is_not(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for name in ("file", "link"):
        assert "is not a folder" in (validate.unwritable(tmp_path / name / "below") or "")


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path))
    assert f"{tmp_path} is not writable" in (validate.unwritable(tmp_path / "a") or "")
