"""ArchSpec: one architecture as plain data."""

from __future__ import annotations

import json

from spaces.spec import ArchSpec

SPEC = ArchSpec("vit_tiny_patch16_224", {"depth": 3, "num_classes": 10}, 32)


def test_a_spec_survives_json_with_and_without_weights() -> None:
    pretrained = ArchSpec(SPEC.model, SPEC.args, 32, "vit_tiny_patch16_224.augreg_in21k")
    for spec in (SPEC, pretrained):
        assert ArchSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_weights_are_part_of_what_a_spec_is_and_absent_ones_leave_no_trace() -> None:
    pretrained = ArchSpec(SPEC.model, SPEC.args, 32, "vit_tiny_patch16_224.augreg_in21k")
    assert pretrained.digest != SPEC.digest
    assert "weights" not in SPEC.canonical


def test_the_digest_does_not_depend_on_order_or_on_tuples() -> None:
    one = ArchSpec("m", {"a": (1, 2), "b": 3}, 32)
    other = ArchSpec("m", {"b": 3, "a": [1, 2]}, 32)
    assert one == other
    assert one.digest == other.digest


def test_arguments_cannot_be_changed_from_outside() -> None:
    args = {"depths": [1, 2]}
    spec = ArchSpec("m", args, 32)
    args["depths"].append(3)
    assert spec.args == {"depths": [1, 2]}
