from __future__ import annotations

import pytest
import torch

from workers.errors import CandidateError
from workers.runtimes import agreement

SCORES = torch.tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]).repeat(16, 1)


@pytest.mark.parametrize("precision", agreement.TOLERANCES)
def test_equal_scores_agree_and_those_past_the_tolerance_do_not(precision):
    tolerance = agreement.TOLERANCES[precision]
    agreement.check(SCORES, SCORES * (1 + 0.9 * tolerance), "it", precision)
    with pytest.raises(CandidateError, match=f"it's scores in {precision} differ from eager torch's"):
        agreement.check(SCORES, SCORES * (1 + 1.1 * tolerance), "it", precision)


def test_scores_that_are_not_numbers_do_not_agree():
    with pytest.raises(CandidateError, match="differ from eager"):
        agreement.check(SCORES, SCORES * float("nan"), "it", "int8")


def test_int8_has_to_choose_the_same_classes():
    """Errors small beside the scores that turn the order of two classes."""
    close = torch.tensor([[10.0, 12.5, 0.0]]).repeat(10, 1)
    other = close.clone()
    other[:2] = torch.tensor([12.0, 11.5, 0.0])
    assert float((other - close).norm() / close.norm()) < agreement.TOLERANCES["int8"]
    with pytest.raises(CandidateError, match="chooses eager torch's class for 80% of the images"):
        agreement.check(close, other, "it", "int8")


def test_ties_that_the_tolerance_explains_count_as_the_same_class():
    tied = torch.tensor([[1.0, 1.001]]).repeat(4, 1)
    assert agreement.agreement(tied, tied.flip(1), 0.1) == 1.0
    assert agreement.agreement(tied, tied.flip(1), 1e-6) == 0.0
