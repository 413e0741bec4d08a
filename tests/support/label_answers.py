"""What parties with real labels of a linear law answer to a protocol for private labels, collected."""

from support import linear_labels

from aggregator.collectors.collectors import Kept, Summed
from aggregator.trial.feature_fitting import fit
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId
from federation.queries.labels import LabelledRows
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

PARTIES = 6
MOST, LEAST = 87, 80  # rows of a party
ROWS = LabelledRows(fit(["constant"], linear_labels.public_table().rows), *linear_labels.RANGE, most=MOST)


def question(options, epsilon=1.0, delta=1e-3, draws=1):
    """What the protocol asks of them."""
    noise, release = options.noise_of(epsilon, delta), ReleaseId("a release")
    return options.question(ROWS, LEAST, noise, release=release, draws=draws, seeded=True)


def collected(options, epsilon=1.0, delta=1e-3, draws=1, broken=()):
    """Their answers, all of them well formed; `broken` parties give none."""
    asked = question(options, epsilon, delta, draws)
    promised = asked.promise()
    collector = Kept if asked.kept else Summed
    answers = collector(asked, PARTIES, promised if isinstance(promised, Guarantee) else None)
    holdings = Reference("support.linear_labels:Parties", {"broken": list(broken)}).to_json()
    assert answers.add(answered(Cohort(holdings, 0, PARTIES, 1), asked)) == {}
    assert answers.answered == PARTIES - len(broken)
    return answers
