"""Shows a job's turn to people: a report at its end, its questions, and nothing else. Pure. Its
activity and failure are in the history; the run tells of a failure."""

from dataclasses import dataclass

from gateway.delivery.fold import EventFolds, ViewFold
from gateway.features.jobs.outcomes import is_silent
from gateway.jobs_port import HERE
from gateway.messages import Firing
from gateway.store.rows import TurnRow
from gateway.texts import say
from gateway.texts.runs import show_due
from gateway.views import Activity, Notice, PlanView, ReplyView, ReportView, View


@dataclass(slots=True, kw_only=True)
class JobFold(ViewFold):
    """The views of one job's turn so far."""

    firing: Firing
    offers: bool = False

    @property
    def _for_here(self) -> bool:
        """The report is for the conversation in which the job runs."""
        places = self.firing.terms.deliver
        return not places or HERE in places

    def _set(self, name: str, view: View, final: bool = False) -> tuple[str, ...]:
        match view:
            case Activity():
                ViewFold._set(self, name, view, final)  # the next lines continue these
                return ()
            case PlanView() if not self.course or not self.course.asking:
                return ()
            case Notice(tone="error") | Notice(quiet=True):
                return ()
            case ReplyView(text=text, state="final") if is_silent(text) or not self._for_here:
                return ()
            case ReplyView(text=text, note=note):
                when = show_due(self.firing.due, self.firing.when)
                due = say("jobs_due", self.language, when=when)
                view = ReportView(
                    title=self.firing.title,
                    text=text,
                    note="\n".join(filter(None, (note, due))),
                    language=self.language,
                )
                return ViewFold._set(self, name, view, final)
            case _:
                return ViewFold._set(self, name, view, final)


def make_fold(row: TurnRow, events: EventFolds) -> ViewFold:
    """An empty fold for the turn of a run."""
    firing = row.firing or Firing(job="", slot="")
    return JobFold(
        turn=row.id,
        asker=row.sender_name,
        language=row.language,
        events=events,
        firing=firing,
    )
