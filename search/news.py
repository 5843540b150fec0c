"""What a driver tells a terminal, in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from search import chance, gate
from search.objectives import Limit
from search.plan import Plan
from search.states import CandidateState
from search.store.models import Candidate
from search.store.write.candidates import TEACHER
from workers.counting import counted


def who(row: Candidate) -> str:
    """`#17 vit`, `resnet (baseline)`."""
    kind = "teacher" if row.number == TEACHER else "baseline"
    return f"{row.name} ({kind})" if row.name is not None else f"#{row.number} {row.family}"


def of_candidate(row: Candidate, plan: Plan, limits: Sequence[Limit] = ()) -> str | None:
    """One line on what has become of a candidate or baseline; None when it is nothing to tell.
    limits: as they stand."""
    name = who(row)
    epochs = f"after {row.epoch} of {counted(plan.rungs[-1], 'epoch')}"
    match CandidateState(row.state):
        case CandidateState.MEASURED:
            return f"{name}: measured, {row.measured['latency_ms']:.3g} ms"
        case CandidateState.REJECTED | CandidateState.FAILED:
            return f"{name}: {row.state}, {row.reason}"
        case CandidateState.WAITING:
            return f"{name}: accuracy {row.measured['accuracy']:.3f} {epochs}"
        case CandidateState.FINISHED:
            found = ", ".join(
                f"{q.name} {row.measured[q.name]:.4g}" for q in plan.objectives if q.name in row.measured
            )
            doubt = gate.doubt(limits, row.measured, row.intervals) if row.number > 0 else None
            low, _ = row.intervals.get("accuracy", (None, None))
            classes = {"num_classes": len(plan.data.class_names)}
            guessing = chance.remark(low, classes) if row.number == TEACHER else ""
            remarks = [f"borderline: {doubt}"] if doubt else []
            remarks += [f"its accuracy is {guessing}"] if guessing else []
            return "; ".join([f"{name}: finished, {found}", *remarks])
        case _:
            return None


def of_search(states: Collection[CandidateState], plan: Plan) -> str:
    """Counts, for a line that stays: `7 of 24 candidates: 2 finished, 4 waiting, 1 rejected`; without the 24 where time
    ends the search."""
    counts = Counter(states)
    listed = ", ".join(f"{counts[state]} {state}" for state in CandidateState if counts[state])
    most = plan.config.search.max_candidates
    of = f" of {most}" if isinstance(most, int) else ""
    what = "candidate" if (most if isinstance(most, int) else len(states)) == 1 else "candidates"
    return f"{len(states)}{of} {what}" + (f": {listed}" if listed else "")
