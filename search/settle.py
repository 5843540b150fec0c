"""What an outcome means for a candidate and its jobs. Called by the driver, inside its transactions."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from search import drifting, news, provenance
from search.costs import Baselines, Costs
from search.drifting import Drifting
from search.errors import UserError
from search.plan import Plan, closed_form
from search.probing import Prober
from search.states import AttemptState, CandidateState, JobState
from search.store.models import Attempt, Candidate, JobRow, Search
from search.store.write import candidates, jobs, results
from spaces.dims import Point
from spaces.spec import ArchSpec
from workers.counting import interval
from workers.job import Evaluation, Kind, Outcome, Status


@dataclass(frozen=True)
class Settled:
    """obsolete: checkpoint paths that nothing needs any more. done: the job did what it was for. given_up: why the
    machine failed it once too often; the job is pending again, and the driver decides. teaches_anew: the teacher is to
    be made again. trouble: what the machine failed it by. measured: a candidate has new figures. news: what there is
    to tell beside that."""

    obsolete: list[str] = field(default_factory=list)
    done: bool = False
    given_up: str | None = None
    teaches_anew: bool = False
    measured: bool = False
    news: str | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class Settler:
    """Rows of one search, written under one lease. device_id: the one that measurements must come from. quarantine:
    hosts on which tries do not count."""

    plan: Plan
    search_id: int
    lease: int
    device_id: str
    quarantine: frozenset[str] = frozenset()

    @property
    def _costs(self) -> Costs:
        return Costs(self.plan, self.search_id, self.device_id)

    @property
    def drifting(self) -> Drifting:
        return Drifting(self.search_id, self.plan.settings.cost.drift_minutes)

    def add_candidate(
        self,
        session: Session,
        number: int,
        point: Point,
        spec: ArchSpec,
        trial: int,
        baselines: Baselines,
    ) -> None:
        """Adds a proposed candidate, and its measurement."""
        family = str(point["family"])
        known = self.plan.closed_form(family, spec)
        row = candidates.add(
            session, self.search_id, number, family, spec, point=point, analysis=known, trial=trial
        )
        self._costs.measure(session, row, baselines)

    def add_baselines(self, session: Session, baselines: Baselines) -> None:
        """Adds the plan's baselines that the search lacks, numbered -1, -2, ..., and their measurements."""
        there = {row.name for row in candidates.baselines(session, self.search_id)}
        for position, (name, spec) in enumerate(self.plan.baselines.items(), start=1):
            if name in there:
                continue
            known = self.plan.baseline_analysis[name]
            row = candidates.add(
                session, self.search_id, -position, "baseline", spec, point={}, analysis=known, name=name
            )
            self._costs.measure(session, row, baselines)

    def add_teacher(self, session: Session) -> None:
        """Adds the plan's teacher, where the search lacks it, and the job that makes it."""
        if self.plan.config.training.distillation is None or candidates.teacher(session, self.search_id):
            return
        teacher = self.plan.teacher
        if teacher is None:
            asked = self.plan.config.training.distillation.teacher.checkpoint
            raise UserError(f"training.distillation.teacher.checkpoint: {asked}: no such file; bring it back")
        row = candidates.add(
            session,
            self.search_id,
            candidates.TEACHER,
            "teacher",
            teacher.spec,
            point={},
            analysis=closed_form(teacher.spec),
            name=teacher.name,
        )
        self._teach(session, row)

    def _teach(self, session: Session, row: Candidate) -> None:
        """Adds the job that makes the teacher, from where it is."""
        epochs = self.plan.teacher.epochs if self.plan.teacher is not None else 0
        jobs.add(session, row, Kind.TEACH, epochs=(row.epoch + 1, epochs) if epochs else (0, 0))

    def _teach_anew(self, session: Session, reason: str) -> str | None:
        """The teacher's checkpoint is lost: it is made again, once, however many miss it. Returns what there is to
        tell."""
        row = candidates.teacher(session, self.search_id)
        assert row is not None
        if row.state != CandidateState.FINISHED:
            return None
        candidates.reopen(row, CandidateState.TRAINING, None)
        row.epoch = 0
        self._teach(session, row)
        results.add_event(session, self.search_id, "retry", f"teaches again: {reason}")
        return f"{news.who(row)}: teaches again: {reason}"

    def settle(
        self,
        session: Session,
        search: Search,
        attempt: Attempt,
        outcome: Outcome,
        baselines: Baselines,
    ) -> Settled:
        """Writes what an outcome means."""
        job = session.get_one(JobRow, attempt.job_id)
        candidate = session.get_one(Candidate, job.candidate_id)
        attempt.host, attempt.pid = outcome.host, outcome.pid
        attempt.device_id, attempt.seconds = outcome.device_id, outcome.seconds
        trouble = self._trouble(search, outcome)
        if trouble is not None:
            jobs.end_attempt(attempt, AttemptState.FAILED, trouble, outcome.detail)
            return self._not_done(session, job, candidate, outcome, trouble)
        for report in outcome.epochs:
            jobs.add_epoch(session, candidate.id, attempt, report)
        if outcome.status == Status.FAILED:
            reason = outcome.reason or "failed"
            jobs.end_attempt(attempt, AttemptState.FAILED, reason, outcome.detail)
            if outcome.notes.get("infeasible") and candidate.number > 0 and job.kind == Kind.MEASURE:
                self._reject_unmeasured(session, job, candidate, reason)
            else:
                self._fail(session, job, candidate, reason)
            return Settled()
        jobs.end_attempt(attempt, AttemptState.DONE)
        obsolete = self._keep_checkpoint(session, job, candidate, attempt, outcome)
        self._keep_origin(session, job, candidate, outcome)
        told = None
        if outcome.status == Status.STOPPED:
            job.first_epoch, job.state = outcome.epoch + 1, JobState.PENDING
            candidate.epoch = outcome.epoch
            self._keep_evaluation(session, candidate, attempt, outcome)
        else:
            jobs.end_job(job, JobState.DONE)
            told = self._keep(session, job, candidate, attempt, outcome, baselines)
        return Settled(obsolete, done=True, measured=job.kind == Kind.MEASURE, news=told)

    def _not_done(
        self, session: Session, job: JobRow, candidate: Candidate, outcome: Outcome, trouble: str
    ) -> Settled:
        """The machine's fault, or that of a file that is gone: the job is to be done again."""
        if outcome.notes.get("teacher_lost"):
            told = self._teach_anew(session, trouble)
            again = self.try_again(session, job, candidate, trouble)
            return Settled(given_up=None if again else trouble, teaches_anew=True, news=told)
        if outcome.notes.get("checkpoint_lost") and job.first_epoch > 1:
            return Settled(news=self._go_further_back(session, job, candidate, trouble))
        again = self.try_again(session, job, candidate, trouble) and outcome.notes.get("retry", True)
        told = f"{news.who(candidate)}: its {job.kind} job was not done: {trouble}"
        return Settled(given_up=None if again else trouble, trouble=trouble, news=told)

    def _keep_origin(self, session: Session, job: JobRow, candidate: Candidate, outcome: Outcome) -> None:
        """What a training began from, and learns from."""
        if job.first_epoch != 1:
            return
        if "weights" in outcome.notes:
            text = provenance.words(outcome.notes["weights"])
            results.add_event(session, self.search_id, "weights", text, candidate.number)
        if "teacher" in outcome.notes:
            text = str(outcome.notes["teacher"])
            results.add_event(session, self.search_id, "teacher", text, candidate.number)

    def _keep(
        self,
        session: Session,
        job: JobRow,
        candidate: Candidate,
        attempt: Attempt,
        outcome: Outcome,
        baselines: Baselines,
    ) -> str | None:
        """What a job that is done was for. Returns what there is to tell."""
        match job.kind:
            case Kind.MEASURE:
                self._costs.keep(session, candidate, attempt, outcome, baselines)
            case Kind.REFERENCE:
                assert outcome.measurement is not None
                self.drifting.keep_reading(session, candidate, outcome.measurement, attempt)
            case Kind.PROBE:
                return self._prober.keep(session, candidate, outcome)
            case Kind.TEACH:
                self._keep_teacher(session, candidate, attempt, outcome)
            case _:
                assert job.kind == Kind.TRAIN, f"nothing is known of {job.kind} jobs here"
                self._keep_training(session, job, candidate, attempt, outcome)
        return None

    def give_up(self, session: Session, job: int, reason: str) -> int:
        """Fails a job for good, and its candidate unless it was a probe; returns the candidate's number."""
        row = session.get_one(JobRow, job)
        candidate = session.get_one(Candidate, row.candidate_id)
        tries = jobs.count_attempts(session, job, self.lease)
        often = f" {tries} times, at last" if tries > 1 else ""
        self._fail(session, row, candidate, f"{row.kind} failed{often}: {reason}")
        return candidate.number

    def take_up(self, session: Session, row: Candidate, trial: int | None, baselines: Baselines) -> None:
        """Lets a stopped candidate go on from where it was: measuring, its unfinished rung, or waiting."""
        if row.number == candidates.TEACHER:
            candidates.reopen(row, CandidateState.TRAINING, None)
            self._teach(session, row)
            return
        ladder = self.plan.rungs
        done = -1 if row.rung is None else row.rung
        if "latency_ms" not in row.measured:
            candidates.reopen(row, CandidateState.PROPOSED, trial)
            self._costs.measure(session, row, baselines)
        elif row.rung is None or row.epoch > ladder[row.rung]:
            candidates.reopen(row, CandidateState.TRAINING, trial)
            rung = len(ladder) - 1 if row.number < 0 else done + 1
            jobs.add(session, row, Kind.TRAIN, rung=rung, epochs=(row.epoch + 1, ladder[rung]))
        else:
            candidates.reopen(row, CandidateState.WAITING, trial)

    def try_again(self, session: Session, job: JobRow, candidate: Candidate, reason: str) -> bool:
        """Puts a job back to pending. False when this driver has tried it as often as it may."""
        session.flush()
        job.state = JobState.PENDING
        text = f"{job.kind} job {job.id} was not done: {reason}"
        results.add_event(session, self.search_id, "retry", text, candidate.number)
        return self.may_try(session, job.id)

    def may_try(self, session: Session, job: int) -> bool:
        """Whether this driver may try a job once more."""
        tries = jobs.count_attempts(session, job, self.lease, self.quarantine)
        return tries < self.plan.settings.limits.max_attempts

    def _go_further_back(self, session: Session, job: JobRow, candidate: Candidate, reason: str) -> str:
        """The job begins after an older checkpoint, or at the first epoch where none is kept. Its candidate keeps
        what it has shown, and its rung. Returns what there is to tell."""
        older = results.newest_checkpoint(session, candidate, job.first_epoch - 2)
        job.first_epoch, job.state = 1 if older is None else older.epoch + 1, JobState.PENDING
        text = f"trains again from epoch {job.first_epoch}: {reason}"
        results.add_event(session, self.search_id, "retry", text, candidate.number)
        return f"{news.who(candidate)}: {text}"

    def _trouble(self, search: Search, outcome: Outcome) -> str | None:
        """What is wrong with the device or node rather than with the candidate."""
        if outcome.status == Status.ERROR:
            return outcome.reason or "device error"
        if outcome.data_digest is not None and outcome.data_digest != search.data["digest"]:
            return f"{outcome.host} reads other images than the search (digest {outcome.data_digest})"
        if outcome.measurement is not None and outcome.measurement.device_id != self.device_id:
            return f"measured on {outcome.measurement.device_id}, not on the search's device {self.device_id}"
        return None

    @property
    def _prober(self) -> Prober:
        return Prober(self.plan, self.search_id)

    def _fail(self, session: Session, job: JobRow, candidate: Candidate, reason: str) -> None:
        jobs.end_job(job, JobState.FAILED, reason)
        if job.kind == Kind.PROBE:
            self._prober.keep_failed(session, candidate, reason)
            return
        if drifting.is_again(job, candidate):
            results.add_event(session, self.search_id, "failed", f"{job.kind}: {reason}", candidate.number)
            return
        candidates.set_state(candidate, CandidateState.FAILED, reason)
        results.add_event(session, self.search_id, "failed", reason, candidate.number)

    def _reject_unmeasured(self, session: Session, job: JobRow, candidate: Candidate, reason: str) -> None:
        """What does not fit into the memory here is no failure of its own: it breaks a limit that the device sets."""
        if drifting.is_again(job, candidate):
            self._fail(session, job, candidate, reason)
            return
        jobs.end_job(job, JobState.FAILED, reason)
        candidates.set_state(candidate, CandidateState.REJECTED, reason)
        results.add_event(session, self.search_id, "rejected", reason, candidate.number)

    def _keep_checkpoint(
        self, session: Session, job: JobRow, candidate: Candidate, attempt: Attempt, outcome: Outcome
    ) -> list[str]:
        """While training may go on, the checkpoint that it began from stays too: it has just been read, and was
        whole."""
        if outcome.checkpoint is None:
            return []
        kept = [outcome.checkpoint]
        before = results.newest_checkpoint(session, candidate, job.first_epoch - 1)
        if before is not None and outcome.epoch < self.plan.rungs[-1]:
            kept.append(before)
        results.add_checkpoint(session, candidate, attempt, outcome.checkpoint)
        session.flush()
        return results.forget_other_checkpoints(session, candidate, *kept)

    def _keep_training(
        self, session: Session, job: JobRow, candidate: Candidate, attempt: Attempt, outcome: Outcome
    ) -> None:
        assert job.rung is not None
        evaluation = self._keep_evaluation(session, candidate, attempt, outcome)
        scores = {"accuracy": evaluation.accuracy}
        candidate.by_rung = dict(candidate.by_rung) | {str(job.rung): scores}
        candidate.rung, candidate.epoch = job.rung, outcome.epoch
        if job.rung < len(self.plan.rungs) - 1:
            candidates.set_state(candidate, CandidateState.WAITING)
            return
        candidates.set_state(candidate, CandidateState.FINISHED)
        text = f"accuracy {evaluation.accuracy:.4f} on {evaluation.num_images} {evaluation.split} images"
        results.add_event(session, self.search_id, "finished", text, candidate.number)

    def _keep_teacher(self, session: Session, row: Candidate, attempt: Attempt, outcome: Outcome) -> None:
        found = self._keep_evaluation(session, row, attempt, outcome)
        row.epoch = outcome.epoch
        candidates.set_state(row, CandidateState.FINISHED)
        bounds = interval(found.accuracy_low, found.accuracy_high, ".4f")
        where = f"on {found.num_images} {found.split} images"
        text = f"teacher {row.name}: accuracy {found.accuracy:.4f} ({bounds}) {where}"
        results.add_event(session, self.search_id, "teacher", text)

    def _keep_evaluation(
        self, session: Session, candidate: Candidate, attempt: Attempt, outcome: Outcome
    ) -> Evaluation:
        """The accuracy that is shown belongs to the epoch that is shown."""
        evaluation = outcome.evaluation
        assert evaluation is not None
        assert evaluation.split == "val"
        results.add_evaluation(session, candidate, attempt, evaluation)
        interval = (evaluation.accuracy_low, evaluation.accuracy_high)
        candidates.learn(candidate, {"accuracy": evaluation.accuracy}, {"accuracy": interval})
        return evaluation
