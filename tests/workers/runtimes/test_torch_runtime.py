from __future__ import annotations

import pytest
import torch
from torch import nn

from spaces.spec import ArchSpec
from workers.errors import CandidateError
from workers.runtimes.torch_runtime import TorchModel, build, check_output

CPU = torch.device("cpu")
RESNET = ArchSpec("resnet10t", {"in_chans": 1, "num_classes": 10}, 32)


def test_no_weight_is_zero_and_the_same_seed_draws_the_same():
    first, again, other = build(RESNET, CPU), build(RESNET, CPU), build(RESNET, CPU, seed=1)
    weights = list(first.network.parameters())
    assert all(bool((weight != 0).all()) for weight in weights)
    pairs = zip(weights, again.network.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not all(torch.equal(a, b) for a, b in zip(weights, other.network.parameters(), strict=True))
    assert not first.network.training


def test_a_call_reads_the_images_as_they_are_when_it_is_made():
    model = TorchModel(nn.Flatten(), CPU)
    images = torch.zeros(2, 1, 2, 2)
    call = model.call(images)
    images += 1
    with torch.inference_mode():
        assert call().sum() == 8


def test_a_duplicate_has_memory_of_its_own():
    model = TorchModel(nn.Linear(2, 2), CPU)
    other = model.duplicate()
    assert other.num_bytes() == model.num_bytes() == 24
    assert next(other.network.parameters()).data_ptr() != next(model.network.parameters()).data_ptr()


@pytest.mark.parametrize("output", [torch.zeros(2, 3, 1), torch.zeros(1, 3), (torch.zeros(2, 3),), None])
def test_what_is_no_row_of_scores_an_image_is_refused(output):
    with pytest.raises(CandidateError, match="for 2 images"):
        check_output(output, 2)


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(CandidateError, match="NaN or infinite"):
        check_output(torch.tensor([[1.0, float("inf")]]), 1)
    check_output(torch.zeros(1, 2), 1)
