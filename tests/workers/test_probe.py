"""What a probe tries, leaves out and takes. Step times are made up; one probe is real."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from workers import executing, probe, probe_choice
from workers.device import Device
from workers.errors import CandidateError
from workers.execution import Execution, Probed, ProbeTask, is_open, reference
from workers.job import Decision, Job, Kind, Outcome, Status
from workers.perform import perform
from workers.settings import CostSettings, RecipeSettings

CPU = Device("cpu", "cpu-1t", "a CPU", 1)
GPU = Device("cuda:0", "gpu-1", "a GPU", 1)
PLAIN, LAST = Execution(), Execution(memory_format="channels_last")
BF16, BOTH = Execution("bf16"), Execution("bf16", "channels_last")
EAGER = [PLAIN, LAST, BF16, BOTH]
OPEN = RecipeSettings(compile="off", probe_seconds=1)
COMPILING = RecipeSettings(probe_seconds=1)


class Bench:
    """Takes no time. step_ms: of each execution, for each architecture; a list for one after the other turn."""

    steps_per_epoch = 100

    def __init__(
        self, step_ms: dict[Execution, Any], out: dict[Execution, str] | None = None, compiling: float = 0
    ):
        self._step_ms, self._out, self._compiling = step_ms, out or {}, compiling
        self.num_subjects = max(len(each) if isinstance(each, tuple) else 1 for each in step_ms.values())
        self.turns: list[Execution] = []

    def why_out(self, way: Execution) -> str | None:
        return self._out.get(way)

    def turn(self, way: Execution, subject: int, seconds: float = 0.0) -> float:
        self.turns.append(way)
        found = self._step_ms[way]
        if isinstance(found, Callable):
            return found(self.turns.count(way))
        return found[subject] if isinstance(found, tuple) else found

    def compile(self, way: Execution) -> float:
        return self._compiling


def choose(
    bench: Bench,
    ways: Sequence[Execution] = EAGER,
    recipe: RecipeSettings = OPEN,
    epochs: int = 9,
    **more: Any,
) -> Any:
    task = ProbeTask(epochs, epochs * more.pop("trainings", 100))
    return probe_choice.Chooser(bench, recipe, task, more.get("no_compiler")).choose(ways)  # type: ignore[arg-type]


def test_the_fastest_way_is_taken_where_it_is_faster_by_the_margin() -> None:
    found = choose(Bench({PLAIN: 10.0, LAST: 9.0, BF16: 8.0, BOTH: 7.5}))
    assert (found.best, found.speed) == (BOTH, pytest.approx(10 / 7.5))
    assert found.why == "1.33x the speed of fp32, contiguous, 1 thread"
    slower = choose(Bench({PLAIN: 10.0, LAST: 9.7, BF16: 12.0, BOTH: 12.0}))
    assert (slower.best, slower.speed) == (PLAIN, 1.0)
    assert slower.why == "none is faster by 5%; the next best, fp32, channels-last, 1 thread: 1.03x"


def test_a_way_has_to_be_faster_for_every_architecture() -> None:
    found = choose(Bench({PLAIN: (10.0, 10.0), LAST: (5.0, 10.1), BF16: (8.0, 8.0), BOTH: (7.0, 9.9)}))
    assert (found.best, found.speed) == (BF16, pytest.approx(1.25))


def test_a_way_that_was_faster_once_and_not_again_is_not_taken() -> None:
    bench = Bench({PLAIN: 10.0, LAST: lambda turn: 8.0 if turn <= probe_choice.MOST_ROUNDS else 10.5})
    found = choose(bench, [PLAIN, LAST])
    assert found.best == PLAIN
    assert found.why.endswith("was 1.25x as fast once, and not for certain again")


def test_a_way_that_is_out_is_not_timed_and_says_why() -> None:
    bench = Bench(
        {PLAIN: 10.0, LAST: 9.0, BF16: 1.0, BOTH: 1.0}, {BF16: "its loss is nan", BOTH: "its loss is nan"}
    )
    found = choose(bench)
    assert found.best == LAST
    assert {trial.execution: trial.out for trial in found.trials if trial.out} == {
        BF16: "its loss is nan",
        BOTH: "its loss is nan",
    }
    assert not {BF16, BOTH} & set(bench.turns)
    with pytest.raises(CandidateError, match="its loss is nan"):
        choose(Bench({PLAIN: 1.0}, {PLAIN: "its loss is nan"}))


def test_ways_take_turns_and_those_far_behind_leave() -> None:
    bench = Bench({PLAIN: 10.0, LAST: 9.0, BF16: 20.0, BOTH: 9.5})
    choose(bench)
    first = bench.turns[1:13]
    assert sorted(map(first.count, EAGER)) == [3, 3, 3, 3]
    assert [first[0], first[4], first[8]] == [PLAIN, LAST, BF16]
    assert bench.turns.count(BF16) == 3


def test_nothing_is_compared_where_that_costs_more_than_it_can_save() -> None:
    bench = Bench({PLAIN: 10.0, LAST: 5.0, BF16: 5.0, BOTH: 5.0})
    found = choose(bench, epochs=1, trainings=1)
    assert (found.best, len(bench.turns)) == (PLAIN, 1)
    assert found.why == "comparing would take 0.64 s, more than 5% of the 1 s that it is for"


def test_compiling_has_to_save_more_than_it_takes() -> None:
    compiled = dataclasses.replace(PLAIN, compiled=True)
    # 900 steps of 300 ms: 270 s, of which compiling leaves 180.
    quick = choose(Bench({PLAIN: 300.0, compiled: 200.0}, compiling=50), [PLAIN], COMPILING)
    assert quick.best == compiled
    assert quick.why == "1.50x the speed of the reference, once compiled in 50 s"
    slow = choose(Bench({PLAIN: 300.0, compiled: 200.0}, compiling=85), [PLAIN], COMPILING)
    assert slow.best == PLAIN
    assert slow.trials[-1].compile_seconds == 85
    bench = Bench({PLAIN: 10.0})
    short = choose(bench, [PLAIN], COMPILING)
    assert short.trials[-1].out == "its shortest training takes 9 s, too little to compile for"
    without = choose(Bench({PLAIN: 300.0}), [PLAIN], COMPILING, no_compiler="no C++ compiler is here")
    assert without.trials[-1].out == "no C++ compiler is here"


def test_only_what_is_open_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(cores: int = 1, device: Device = CPU, **settings: Any) -> list[Execution]:
        return probe.ways(RecipeSettings(**settings), ProbeTask(1, 1, cores), device)

    assert found() == EAGER
    assert found(precision="bf16") == [BF16, BOTH]
    assert found(precision="fp32", memory_format="channels_last") == [LAST]
    assert [way.threads for way in found(2, precision="fp32", memory_format="contiguous")] == [1, 2]
    assert {way.threads for way in found(2, threads=2)} == {2}
    monkeypatch.setattr(executing, "can_bf16", lambda _: False)
    assert found(4, GPU) == [Execution(threads=0), Execution(memory_format="channels_last", threads=0)]
    assert found(device=GPU, precision="bf16")[0].precision == "bf16"


def test_a_probe_is_needed_for_what_is_open() -> None:
    told = {"precision": "fp32", "memory_format": "contiguous", "compile": "off"}
    assert is_open(RecipeSettings(), 1)
    assert not is_open(RecipeSettings(**told), 1)
    assert is_open(RecipeSettings(**told), 2)
    assert not is_open(RecipeSettings(**told, threads=1), 2)
    assert reference(RecipeSettings(precision="bf16", compile="on")) == Execution("bf16", compiled=True)


def test_a_loss_that_is_not_that_of_fp32_is_noticed(
    train_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(executing.Network):
        def __call__(self, images: torch.Tensor) -> Any:
            scores = super().__call__(images)
            return scores * 100 if self.execution.precision == "bf16" else scores

    monkeypatch.setattr(executing, "Network", Wrong)
    monkeypatch.setattr(probe_choice, "SHARE", 1e6)
    found = perform(probe_job(train_job), lambda _: Decision.CONTINUE).probed
    assert found is not None
    out = {trial.execution: trial.out for trial in found.trials}
    assert str(out[BF16]).startswith("its loss is ")
    assert out[LAST] is None


def probe_job(train_job: Callable[..., Job], **changes: Any) -> Job:
    job = train_job(1, 1, kind=Kind.PROBE, probe=ProbeTask(1, 1), compile="off", probe_seconds=0.3, **changes)
    return dataclasses.replace(
        job, settings=dataclasses.replace(job.settings, cost=CostSettings(device="cpu"))
    )


@pytest.mark.parametrize(
    "changes", [{}, {"recipe": "deit"}, {"accumulation": 2}], ids=["plain", "deit", "accumulated"]
)
def test_a_probe_compares_on_the_real_steps_and_crosses_the_border(
    train_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr(probe_choice, "SHARE", 1e6)
    job = Job.from_json(probe_job(train_job, **changes).to_json())
    outcome = perform(job, lambda _: Decision.CONTINUE)
    assert outcome.status is Status.DONE, outcome.reason
    assert Outcome.from_json(outcome.to_json()) == outcome
    found = outcome.probed
    assert isinstance(found, Probed)
    assert [trial.execution for trial in found.trials] == EAGER
    assert all(trial.step_ms[0] > 0 for trial in found.trials)
    assert found.reference == PLAIN
    assert found.execution in EAGER
    assert outcome.data_digest


def test_a_network_that_cannot_be_trained_fails_its_probe(train_job: Callable[..., Job]) -> None:
    outcome = perform(
        probe_job(train_job, learning_rate=10.0, spec=train_job(1, 1).spec), lambda _: Decision.CONTINUE
    )
    assert outcome.status is Status.DONE  # one step at a high rate is still finite
    broken = dataclasses.replace(train_job(1, 1).spec, args={**train_job(1, 1).spec.args, "num_classes": 3})
    outcome = perform(probe_job(train_job, spec=broken), lambda _: Decision.CONTINUE)
    assert outcome.status is Status.FAILED
