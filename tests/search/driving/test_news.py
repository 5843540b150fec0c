from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search import news
from search.states import CandidateState


def test_a_watcher_hears_once_of_every_step_of_a_candidate(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(constraints={"latency_ms": 6.0}, max_candidates=6)
    driver = bench.driver()
    lines: list[str] = []
    status: list[str] = []
    driver.on_event, driver.on_status = lines.append, status.append
    bench.run(driver)
    assert len(set(lines)) == len(lines)
    assert "resnet (baseline): finished" in " ".join(lines)
    for number in range(1, 7):
        mine = [line for line in lines if line.startswith(f"#{number} ")]
        assert "measured" in mine[0] or "above the limit 6" in mine[0]
    assert any("after 1 of 9 epochs" in line for line in lines)
    assert status[-1].startswith("6 of 6 candidates: ")


def test_counts_are_listed_in_the_order_of_a_candidates_life(make_bench: Callable[..., Any]) -> None:
    plan = make_bench(max_candidates=9).plan
    states = [CandidateState.FINISHED, CandidateState.REJECTED, CandidateState.FINISHED]
    assert news.of_search(states, plan) == "3 of 9 candidates: 1 rejected, 2 finished"
    assert news.of_search([], plan) == "0 of 9 candidates"
