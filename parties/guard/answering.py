"""The order of checks at a party's node: bounds, declared numbers, permission, payment, and only then the rows.

The order is the same for every query:

1. The node bounds the size of the query.
2. The query must agree with the node's declared numbers.
3. The node must be allowed to answer the query.
4. A site must have paid for the query (`parties.site`).
5. Only then does the node touch a row.

Kinds of queries are found through entry points, of this project and of other packages. A package is imported on first
use, so a broken package affects no other.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeAlias, get_type_hints

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.plugins import find, installed
from federation.contract.query import OFF, PrivateQuestion, PublicQuestion, Question, Submission, TrustedQuestion
from federation.contract.randomness import NoiseBits
from federation.queries.additive import AdditiveQuestion
from parties.party_data.cohort import Cohort
from parties.party_data.isolation import alone

Arrays: TypeAlias = Mapping[str, np.ndarray]
NoisyAct: TypeAlias = Callable[[int, NoiseBits], Arrays]  # of a party and the bits of its noise
PlainAct: TypeAlias = Callable[[int], Arrays]


def with_noise(question: AdditiveQuestion, exact: Callable[[int], np.ndarray]) -> NoisyAct:
    """Return what responds to an additive query: the exact vector of a party, with the noise of the query."""
    mechanism = None if question.noise.kind == OFF else question.mechanism()

    def act(party: int, bits: NoiseBits) -> Arrays:
        vector = exact(party)
        if mechanism is None:
            return {"vector": np.tile(vector, (question.draws, 1))}
        return {"vector": mechanism.release(vector, bits, question.draws)}

    return act


def answered(cohort: Cohort, question: Question) -> Submission:
    """The answer of every party behind a node to a question of an installed kind (entry points `federation.queries`).

    A party whose data fails is named among the failures, and costs no other party. Raises `InputError` as `permitted`,
    and outside a simulation where the site has not paid for the answer.
    """
    answer = permitted(cohort, question)
    if cohort.seed is None and not cohort.paid:
        raise InputError("a deployed party answers what its site has paid for; serve it by 'federation party run'")
    return answer()


def permitted(cohort: Cohort, question: Question) -> Callable[[], Submission]:
    """What answers a question once it has been paid for; until it is called no row is touched.

    What is installed for a kind is a function of the cohort and the question, named by the type of the latter:

    - of a `PrivateQuestion` it returns a function of a party's id and the bits of its noise, which is called once the
      party has paid, and makes the question's fields without the party axis;
    - of a `PublicQuestion` a function of the party's id alone, for nodes whose features are public;
    - of a `TrustedQuestion` the submission of all parties, who may be served together.

    Raises `InputError` for a question that is too large, contradicts what the node declares, or that only a simulation
    may ask.
    """
    question.require_bounded(cohort.limits)
    cohort.declared.require(question.assumes())
    if cohort.masked and not question.shared:
        raise InputError("a secure sum is for answers with a share of a noise; ask for this one by itself")
    if question.takes_features_as_public and cohort.seed is None and not cohort.public_features:
        raise InputError("this site keeps its features; set public-features in its configuration if they are public")
    answer = answerer(question.kind)
    if isinstance(question, TrustedQuestion):
        return partial(answer, cohort, question)
    if isinstance(question, PublicQuestion):
        return partial(gathered, cohort, question, answer(cohort, question))
    if not isinstance(question, PrivateQuestion):
        raise InputError(f"the question '{question.kind}' does not say whether answers are private; update its package")
    promise = question.promise(cohort.declared)
    if cohort.seed is None:
        _require_deployable(cohort, question, promise)
    act: NoisyAct = answer(cohort, question)
    seed, key = cohort.seed if question.seeded else None, question.release.key
    own = promise if isinstance(promise, Guarantee) and not question.shared else None
    return partial(gathered, cohort, question, lambda party: act(party, NoiseBits(seed, key, party)), own)


def gathered(cohort: Cohort, question: Question, act: PlainAct, guarantee: Guarantee | None = None) -> Submission:
    """What `act` makes of each party: the question's fields without the party axis.

    A party for which it raises is named among the failures, and costs no other party.
    """
    answers, failures = alone(cohort, cohort.parties, act)
    arrays = {
        name: np.array([answer[name] for answer in answers.values()], declared.dtype).reshape(-1, *declared.shape)
        for name, declared in question.fields().items()
    }
    return Submission(question.kind, np.array(list(answers), dtype=np.int64), arrays, guarantee, failures)


def _require_deployable(cohort: Cohort, question: PrivateQuestion, promise: Guarantee | NoGuarantee) -> None:
    """Refuse what only a simulation may ask of a party. Raises `InputError`."""
    if isinstance(promise, NoGuarantee):
        raise InputError(f"this site answers under a guarantee only: {promise.reason}")
    if not cohort.masked and (why := question.simulated_only()):
        raise InputError(why)
    if question.seeded or question.draws != 1:
        raise InputError("outside a simulation noise has no seed, and every answer is given once")


GROUP = "federation.queries"
_KINDS = (PrivateQuestion, PublicQuestion, TrustedQuestion)


def kinds() -> list[str]:
    """The kinds of question that something is installed for, sorted.

    Examples:
        >>> kinds()[:3]
        ['bag_sums', 'count_totals', 'counts']
    """
    return list(installed(GROUP))


def answerer(kind: str) -> Callable[..., Any]:
    """The function that answers questions of a kind, as `parties.guard.answering.answered` describes it.

    Raises `InputError` if there is none, and one that names the package where it cannot be imported or called.
    """
    entry = find(GROUP, "question", kind)
    found: Callable[..., Any] = entry.load()
    if not callable(found):
        raise InputError(f"{entry.described} is no function; its package must be repaired")
    return found


def question_type(kind: str) -> type[Question]:
    """The class of the questions of a kind, by the type of the argument `question` of what answers them.

    Raises `InputError` as `answerer`, and for a function that does not name one, one that does not say what its answers
    are for, or one of another kind than the entry point.
    """
    entry = find(GROUP, "question", kind)
    try:
        hint = _question_hint(answerer(kind))
    except NameError as error:
        raise InputError(f"{entry.described} has a type that cannot be read: {error}") from error
    if not (isinstance(hint, type) and issubclass(hint, _KINDS)):
        raise InputError(
            f"{entry.described} must have an argument 'question' whose type derives from "
            f"{' or '.join(kind.__name__ for kind in _KINDS)}, got {hint}; its package must be repaired"
        )
    if hint.kind != kind:
        raise InputError(f"{entry.described} answers questions of the kind '{hint.kind}'; rename either")
    return hint


@cache
def _question_hint(answers: Callable[..., Any]) -> Any:
    """What the argument `question` of a function is declared to be; every message asks for it."""
    return get_type_hints(answers).get("question")
