"""Writes golden.json: what the closed forms say today of the field's models and of three points of every family.

python tests/spaces/write_golden.py

A change of the file in a commit is a change of what is built or counted, and has to be meant: candidates are known by
their digests.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from spaces.analysis import analyse
from spaces.registry import FAMILIES, PRESETS, make_space, named_space
from spaces.space import Space
from spaces.spec import Task

PATH = Path(__file__).with_name("golden.json")


def row(space: Space, rng: random.Random) -> dict[str, Any]:
    spec = space.spec(space.sample(rng))
    known = analyse(spec)
    figures = [known.params, known.flops, known.tokens, known.activations]
    return {"digest": spec.digest, "figures": figures, **spec.to_dict()}


def rows() -> dict[str, Any]:
    found = {
        name: row(named_space(name), random.Random(0)) for own in FAMILIES.values() for name in own.named
    }
    for preset, own in PRESETS.items():
        for family in {**own.families, **own.on_request}:
            space = make_space(Task(own.example_size, 3, 10), preset, [family])
            rng = random.Random(f"{preset} {family}")
            found |= {f"{preset} {family} {number}": row(space, rng) for number in (1, 2, 3)}
    return found


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(own)}" for name, own in rows().items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
