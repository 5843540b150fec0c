"""What networks are called and what they cost does not change by accident: golden.json, by write_golden.py."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from spaces.analysis import analyse
from spaces.registry import FAMILIES, PRESETS, named_space
from spaces.spec import ArchSpec

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


@pytest.mark.parametrize("name", GOLDEN)
def test_a_network_has_the_digest_and_the_figures_that_it_had(name):
    row = GOLDEN[name]
    spec = ArchSpec.from_dict(row)
    known = analyse(spec)
    assert spec.digest == row["digest"]
    assert [known.params, known.flops, known.tokens, known.activations] == row["figures"]


@pytest.mark.parametrize("name", [name for family in FAMILIES.values() for name in family.named])
def test_a_named_network_is_the_point_that_it_was(name):
    space = named_space(name)
    assert space.spec(space.sample(random.Random(0))).digest == GOLDEN[name]["digest"]


def test_every_family_of_every_preset_has_its_rows():
    families = {
        (name, family) for name, own in PRESETS.items() for family in {**own.families, **own.on_request}
    }
    assert {tuple(name.split()[:2]) for name in GOLDEN if " " in name} == families
