"""The card of an exported model says what was measured, how, and on which images."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from dashboards import candidate_context, candidate_data
from dashboards.words import number
from search import export
from search.candidate_json import candidate_dict
from search.cli import look_text, model_card
from search.store.models import Search
from search.store.read.searches import search_by_name
from search.store.write import candidates, results
from spaces.spec import ArchSpec
from workers.bundle.export import Contents
from workers.bundle.sample import Sample
from workers.data.batches import DeviceData


def card(filled: Any, which: str = "5", **changes: Any) -> str:
    with filled.store.read() as reader:
        wanted = export.prepare(reader, search_by_name(reader, filled.name), which)
    names = wanted.request.source.class_names
    one = torch.ones(1, 1, 1)
    data = DeviceData({}, one, one, names, 8, 8, 1, "0", torch.device("cpu"))
    settings = {"image_size": 8, "channels": 1, "class_names": list(names)}
    pixels = np.zeros((32, 8, 8, 1), np.uint8)
    given = {"preprocessing": settings, "sample": Sample(pixels, data), "onnx": False, "weights": None}
    return model_card.text(wanted, Contents(**given | changes))


def test_every_figure_stands_in_it_with_its_interval_and_how_it_was_taken(filled: Any) -> None:
    text = card(filled)
    with filled.store.read() as reader:
        point = export.prepare(reader, search_by_name(reader, "digits"), "5").point
    rows = dict(re.findall(r"^\| [^|]+`(\w+)` \| (.*) \|$", text, re.MULTILINE))
    assert rows.keys() == point.values.keys()
    for name, value in point.values.items():
        assert rows[name].startswith(number(name, value))
    low, high = point.intervals["accuracy"]
    assert f"({low:.3f}–{high:.3f}) | share of the 270 validation images" in rows["accuracy"]
    assert "Example CPU" in rows["latency_ms"]


def test_the_accuracy_is_called_one_on_validation_images_and_no_test_score(filled: Any) -> None:
    text = " ".join(card(filled).split())
    assert "| validation accuracy, `accuracy` |" in text
    assert "It is no test score." in text
    assert "test accuracy" not in text


def test_baselines_stand_beside_it(filled: Any) -> None:
    assert "For comparison, measured and trained the same way: `resnet`: accuracy" in " ".join(
        card(filled).split()
    )
    own = card(filled, "resnet")
    assert own.startswith("# `digits`, baseline `resnet`\n")
    assert "For comparison" not in own


def test_a_candidate_that_breaks_a_limit_says_so(filled: Any) -> None:
    def tighten(session: Any) -> None:
        row = session.get(Search, 1)
        row.config = dict(row.config) | {"constraints": {"latency_ms": 0.4}}

    filled.store.write(tighten)
    assert "It breaks a limit of the search: latency_ms 0.5" in " ".join(card(filled).split())


def test_pretrained_weights_noise_and_onnx_are_told(filled: Any) -> None:
    from sqlalchemy import update

    from search.store.models import Candidate

    spec = {"model": "vit", "args": {}, "image_size": 8, "weights": "vit_tiny.augreg"}
    filled.store.write(
        lambda session: session.execute(update(Candidate).where(Candidate.number == 5).values(spec=spec))
    )
    plain = card(filled)
    assert "from the pretrained weights `vit_tiny.augreg`; their source states their licence" in plain
    assert "model.onnx" not in plain
    sample = Sample(np.zeros((32, 8, 8, 1), np.uint8), None, "they are gone")  # type: ignore[arg-type]
    noisy = " ".join(card(filled, sample=sample, onnx=True).split())
    assert "32 noise images, because `they are gone`" in noisy
    assert "`model.onnx` takes `images`, float32 [n, 1, 8, 8]" in noisy


INHERITED = {
    "name": "deit_tiny_patch16_224.fb_in1k",
    "file": "/w/x.safetensors",
    "sha256": "ab" * 32,
    "data": "fb_in1k",
    "image_size": 224,
    "share": 0.934,
}


def test_what_training_began_from_and_learnt_from_is_told(filled: Any) -> None:
    def add(session: Any) -> None:
        search = session.query(Search).one()
        teacher = {"teacher": {"train": "resnet18"}, "kind": "soft", "alpha": 0.5, "temperature": None}
        training = {**search.config["training"], "distillation": teacher}
        search.config = {**search.config, "training": training}
        spec = ArchSpec("resnet18", {"in_chans": 1, "num_classes": 10}, 8)
        candidates.add(
            session, search.id, candidates.TEACHER, "teacher", spec, point={}, analysis={}, name="resnet18"
        )

    filled.store.write(add)
    text = " ".join(card(filled, weights=INHERITED).split())
    assert (
        "from parts of the pretrained weights, 93% of its parameters, `deit_tiny_patch16_224.fb_in1k` "
        "(pretrained on `fb_in1k`, 224 px); their source states their licence and data"
    ) in text
    assert "learnt from the teacher resnet18, proposed; candidates learn its probabilities" in text
    with filled.store.read() as reader:
        search = search_by_name(reader, filled.name)
        page = candidate_context.values(candidate_data.load(reader, filled.name, 5))
        shown = look_text.candidate(candidate_dict(reader, search, "5"))
    assert page["began"] == [("learns from", "resnet18, proposed; candidates learn its probabilities")]
    assert "teacher     resnet18" in shown


def test_the_newest_of_several_beginnings_is_told(filled: Any) -> None:
    def add(session: Any) -> None:
        search = session.query(Search).one()
        for name in ("old", "new"):
            results.add_event(session, search.id, "weights", f"began from {name} (SHA-256 ab)", 5)

    filled.store.write(add)
    with filled.store.read() as reader:
        search = search_by_name(reader, filled.name)
        found = [candidate_dict(reader, search, which)["weights"] for which in ("5", "1", "resnet")]
    assert found == ["new (SHA-256 ab)", None, None]


def test_many_classes_are_counted(filled: Any) -> None:
    names = [f"class {i}" for i in range(1000)]
    settings = {"image_size": 8, "channels": 3, "class_names": names}
    text = " ".join(card(filled, preprocessing=settings).split())
    assert "colour images of 8 x 8 pixels into 1000 classes" in text
    assert "`class 19` and 980 more." in text


def test_hostile_names_are_text(hostile: Any) -> None:
    """Markup stands in code spans or is escaped; nothing opens a tag, a link or a table cell."""
    text = card(hostile)
    outside = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert "<" not in outside
    assert ">" not in outside
    assert "](" not in outside
    assert all(line.count("|") in (0, 3, 4) for line in re.sub(r"\\\|", "", text).splitlines())


@pytest.mark.parametrize("words", ["a`b", "`", "", "a\nb\x1b[2J", "x" * 5000, "</script>|](x)"])
def test_any_text_is_one_code_span(words: str) -> None:
    found = model_card.code(words)
    assert found.count("`") == 2
    assert found[0] == found[-1] == "`"
    assert 3 <= len(found) <= 202
    assert found.isprintable()
