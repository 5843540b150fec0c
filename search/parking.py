"""Whose fault it is that a job fails: its candidate's, one machine's, or every machine's.

A job that machines failed as often as it may be tried is set aside. If another job is done meanwhile, it was the
candidate's fault. If more have to be set aside than there are machines, or nothing has ever worked on the only one, it
is theirs: the search is drained, and nothing is lost. A machine that fails several jobs in a row is put in quarantine
where another is left, and what it has failed is tried there as if for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from search.ledger import Write
from search.quarantine import Quarantine, Tried
from search.settle import Settler


@dataclass
class Parking:
    """Of one driver, which lends it what the fields name. hosts: that jobs can go to, where there may be several.
    jobs: set aside, and why. works: whether any job has ever been done."""

    quarantine: Quarantine
    hosts: Callable[[], Collection[str]]
    settler: Callable[[], Settler]
    write: Write
    after: Callable[[int], None]
    event: Callable[[str, str], None]
    drain: Callable[[str], None]
    jobs: dict[int, str] = field(default_factory=dict)
    works: bool = False

    def judge(self, tried: Tried, given_up: str | None) -> None:
        """Takes in how an attempt ended. given_up: why its job may not be tried again."""
        reason = self.quarantine.note(tried, self.hosts)
        if reason is not None:
            self.event("quarantined", reason)
            self._release()
        if given_up is not None and tried.host not in self.quarantine.hosts:
            self.jobs[tried.job] = given_up
            why = why_drain(len(self.jobs), self.works, self.quarantine.left(self.hosts()), given_up)
            if why is not None:
                self.drain(why)

    def done(self) -> None:
        """A job did what it was for."""
        self.works = True
        self.fail_all()

    def fail_all(self) -> bool:
        """What is set aside is the candidates' fault. True when there was any."""
        parked, self.jobs = self.jobs, {}
        for job, reason in parked.items():
            number = self.write(lambda s, _, job=job, reason=reason: self.settler().give_up(s, job, reason))
            self.after(number)
        return bool(parked)

    def _release(self) -> None:
        """What may be tried again, now that the tries in quarantine do not count."""
        for job in list(self.jobs):
            if self.write(lambda s, _, job=job: self.settler().may_try(s, job)):
                del self.jobs[job]


def why_drain(num_parked: int, works: bool, machines: int, reason: str) -> str | None:
    """Why a search cannot go on with so many jobs set aside, or None. Pure. machines: that get jobs."""
    if num_parked <= machines and (works or machines > 1):
        return None
    which = "this machine fails its" if machines == 1 else "the machines fail their"
    return f"{which} jobs ({reason}); mend that first"
