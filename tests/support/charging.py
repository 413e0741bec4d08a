"""A site without letters and processes: what an answer costs is charged to a journal, and then it is given."""

from __future__ import annotations

from dataclasses import replace

from federation.contract.guarantee import Adjacency, Guarantee, Unit
from parties.guard.answering import answered
from parties.site.accounts import Account, Accounts, Allowances, Journal
from parties.site.worker import cost_of


class Charging:
    """One party at a site where what protects one `unit` may cost (`epsilon`, `delta`) in all."""

    def __init__(self, folder, cohort, epsilon=1.0, delta=1e-3, unit=Unit.LABEL, adjacency=Adjacency.REPLACE):
        allowances = Allowances((Account(unit, adjacency, epsilon, delta),), features_are_public=cohort.public_features)
        self.accounts = Accounts("rows", allowances, Journal(folder / "journal.jsonl"))
        self._cohort = cohort

    @property
    def charged(self):
        """The guarantees that were paid for, in order."""
        return [Guarantee.from_dict(line["guarantee"]) for line in self.accounts.journal.lines]

    def answered(self, question):
        """Raises what a site refuses by, before a row is touched."""
        cost = cost_of(question, self._cohort)
        if cost.guarantee is not None:
            self.accounts.charge(f"{cost.kind} {cost.release}", cost.guarantee, cost.trusted, {})
        return answered(replace(self._cohort, paid=True), question)
