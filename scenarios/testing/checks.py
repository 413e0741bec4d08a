"""Checks of a protocol against its contract, for its author: each says what is wrong in one sentence."""

import dataclasses
import json
import math
import pickle
import tempfile
import tracemalloc
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.contract.protocol import Place, Protocol, Refused
from aggregator.contract.registry import PROTOCOLS, lacks
from aggregator.contract.session import Asked
from aggregator.contract.worst_case import PrivateWorstCase, TrustedWorstCase
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.trial import Views, World
from federation.contract.errors import BudgetExceededError, FederationError, InputError
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import installed
from federation.contract.query import CODE, TrustedQuestion
from federation.contract.trust import TrustTerms
from federation.contract.validation import apart
from federation.engines.codec import (
    decode_question,
    decode_submission,
    encode_question,
    encode_submission,
    parts_of,
    question_digest,
    read_again,
)
from federation.engines.nodes import Placement
from parties.guard.answering import answered, question_type
from parties.party_data.cohort import Cohort
from scenarios.audits.auditor import audit_sides, audit_variant, begun, claim, private_question, replayed
from scenarios.settings.sweep import Variant
from scenarios.testing.small_trials import PARTIES, SEED, SitesGrid, generic_sampler, provider
from scenarios.testing.small_trials import plan as small_plan
from scenarios.testing.small_trials import run as small_run

_EXTREMES: tuple[Any, ...] = (0, -1, 1, 2, 10**12, 0.0, -1.0, 1e-300, 1e300, math.inf, math.nan)
_LARGE = 2 * 10**7  # of a size that no check of a small world needs: 160 MB of numbers
_SLACK = 64 << 20  # bytes that an answer may take beside its numbers
_COPIES = 6  # of its numbers that a party may hold at a time
_RUNS = 2_500  # of a generic pair
_EPSILON, _DELTA = 1.0, 0.01  # where also Gaussian noise can be told from half of it


class CheckFailed(AssertionError):
    """A protocol does not keep to its contract."""


@dataclass(frozen=True)
class Checked:
    """A protocol with the options that are checked."""

    found: type[Protocol]
    kind: str
    options: Mapping[str, Any]

    @property
    def chosen(self) -> Protocol:
        """The protocol itself."""
        return self.found(**self.options)

    @property
    def variant(self) -> Variant:
        """As a variant of a scenario."""
        return Variant(self.kind, self.kind, dict(self.options), {}, False)

    def world(self, **changes: Any) -> World:
        """A small world in which a check runs the protocol."""
        with tempfile.TemporaryDirectory() as folder:
            made = small_plan(self.found, self.kind, self.options, Path(folder), **changes)
        return World(made, Views(made)).of(made.variants[0])

    def asked(self, **changes: Any) -> list[Asked]:
        """What a session asks first."""
        return list(self.chosen.begin(self.world(**changes), 5.0, 1).questions())


Check = Callable[[Checked], None]


def check_protocol(found: type[Protocol], options: Sequence[Mapping[str, Any]] = ({},)) -> None:
    """Hold a protocol against the contract, for each of these options; installed by entry points, as its questions are.

    Raises `CheckFailed` with what is wrong. Takes about half a minute for each of the options.
    """
    for name, check in checks(found, options):
        try:
            check()
        except CheckFailed as failed:
            raise CheckFailed(f"{found.__name__}, {name}: {failed}") from failed
        except Exception as error:
            raise CheckFailed(f"{found.__name__}, {name}: {type(error).__name__}: {error}") from error


def checks(
    found: type[Protocol], options: Sequence[Mapping[str, Any]] = ({},)
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each check by name, to be called; for tests that report them one by one.

    Examples:
        >>> from aggregator.protocols.label_sums import NoisyLabelSums
        >>> found = dict(checks(NoisyLabelSums))
        >>> len(found), next(iter(found))
        (13, 'its members are declared')
    """
    missing = lacks(found)
    kind = next(
        (name for name, one in installed(PROTOCOLS).items() if one.entry.value.endswith(f":{found.__name__}")), ""
    )

    def declared() -> None:
        if missing:
            raise CheckFailed(f"lacks {', '.join(missing)}")
        if not kind:
            raise CheckFailed(f"no entry point {PROTOCOLS} names it")

    yield "its members are declared", declared
    if missing or not kind:
        return
    for given in options:
        checked = Checked(found, kind, given)
        for check in _CHECKS:
            text = (check.__doc__ or "").strip().rstrip(".")
            label = f"{text[:1].lower()}{text[1:]}" + (f" ({dict(given)})" if given else "")
            yield label, lambda check=check, checked=checked: check(checked)  # type: ignore[misc]


def _plain_options(one: Checked) -> None:
    """Options are plain, can be pickled, and come back from JSON as they were."""
    chosen = one.chosen
    if pickle.loads(pickle.dumps(chosen)) != chosen:
        raise CheckFailed("an unpickled copy differs")
    record = json.loads(json.dumps(dataclasses.asdict(chosen)))
    if one.found(**record) != chosen:
        raise CheckFailed("what JSON gives back differs")


def _checked_options(one: Checked) -> None:
    """Options out of range are refused in a sentence, and whatever is taken can begin or is refused."""
    hints = typing.get_type_hints(one.found)
    for option in dataclasses.fields(one.found):
        for value in _values(hints[option.name]):
            given = {**one.options, option.name: value}
            try:
                chosen = one.found(**given)
                if isinstance(chosen.place, Refused):
                    continue
                public = PublicNumbers(1e-3, features=4, terms=TrustTerms(PARTIES))
                chosen.promised(public, 5.0)
                for asked in replace(one, options=given).asked():
                    asked.question.fields()
            except FederationError:
                continue
            except Exception as error:
                raise CheckFailed(
                    f"{option.name}={value!r} is taken, and then fails with {type(error).__name__}: {error}; raise an "
                    "InputError in __post_init__"
                ) from error


def _values(hint: Any) -> list[Any]:
    """Values of a type at its extremes; all of a literal's."""
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    if arms := [arm for arm in typing.get_args(hint) if arm is not type(None)]:
        return [] if typing.get_origin(hint) is tuple else [value for arm in arms for value in _values(arm)]
    return [value for value in _EXTREMES if hint in (int, float) and type(value) is hint]


def _idle_options(one: Checked) -> None:
    """Options that are said to be idle change nothing that is released."""
    hints = typing.get_type_hints(one.found)
    before = _released(one) if one.chosen.idle() else b""
    for name in one.chosen.idle():
        for value in _values(hints[name]):
            try:
                after = _released(replace(one, options={**one.options, name: value}))
            except FederationError:
                continue
            if after != before:
                raise CheckFailed(f"{name}={value!r} is said to make no difference, and changes what is released")


def _wire(one: Checked) -> None:
    """Questions and answers cross the wire unchanged, and say whether answers are private."""
    for asked in one.asked():
        question = asked.question
        expected = question_type(question.kind)
        if type(question) is not expected:
            raise CheckFailed(f"asks a {type(question).__name__}, and parties answer a {expected.__name__}")
        read = decode_question(encode_question(question), expected)
        if question_digest(read) != question_digest(question):
            raise CheckFailed(f"the question '{question.kind}' comes back from the wire as another one")
        sent = answered(_cohort(one), question)
        if sent.failures:
            raise CheckFailed(f"parties fail to answer '{question.kind}': {next(iter(sent.failures.values()))}")
        back = decode_submission(encode_submission(sent, question.fields()), question.fields())
        for name, array in sent.arrays.items():
            if not np.array_equal(back.arrays[name], array):
                raise CheckFailed(f"the field '{name}' of an answer comes back from the wire as another one")
        if isinstance(question, TrustedQuestion) and one.chosen.place is Place.PARTY:
            raise CheckFailed(f"its noise is the parties', and '{question.kind}' asks them for answers without any")


def _bounded_questions(one: Checked) -> None:
    """Every number of a question is bounded before anything of its size is allocated."""
    for asked in one.asked():
        question = asked.question
        for name, value in parts_of(question)[0].items():
            if type(value) is not int or name.startswith("release."):
                continue
            try:
                large = read_again(question, {name: _LARGE})
                large.require_bounded(CODE)
            except InputError:
                continue
            numbers = sum(field.numbers for field in large.fields().values()) + large.work()
            tracemalloc.start()
            try:
                # However it ends, it must not take more memory than it said.
                answered(replace(_cohort(one), count=1), large)
            except InputError:
                pass
            finally:
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            if peak > 8 * _COPIES * numbers + _SLACK:
                raise CheckFailed(
                    f"'{question.kind}' with {name}={_LARGE} is taken, says that it takes {numbers} numbers, and took "
                    f"{peak >> 20} MiB; bound it in __post_init__, or count it in fields() or work()"
                )


def _cohorts(one: Checked) -> None:
    """Releases are the same bytes whatever the number of parties behind a node."""
    found = [_released(one, per_node=size) for size in (PARTIES, 1, 4)]
    if found[0] != found[1] or found[0] != found[2]:
        raise CheckFailed("the release depends on which parties share a node")


def _dropouts(one: Checked) -> None:
    """Parties that drop out or send nonsense cost only themselves."""
    for mode in ("dropped", "nan", "huge", "twice"):
        per_node = 1 if mode == "twice" else 2
        if not _released(one, mode=mode, per_node=per_node, draws=1):
            raise CheckFailed(f"nothing is released beside a party that {mode}")


def _gate(one: Checked) -> None:
    """A deployed plan beyond its budget is refused before anybody is asked."""
    grid = SitesGrid()
    try:
        _deployed(one, grid, budget={"epsilon": 1.0, "delta": 1e-3})
    except BudgetExceededError:
        pass
    else:
        raise CheckFailed("a plan of epsilon 5 with a budget of 1 was run")
    if grid.asked:
        raise CheckFailed(f"{grid.asked} questions were asked before the budget refused")


def _paid(one: Checked) -> None:
    """Deployed parties pay what the release is charged, once."""
    local = not any(isinstance(asked.question, TrustedQuestion) for asked in one.asked())
    if not local or one.chosen.place is not Place.PARTY:
        return
    grid = SitesGrid()
    [charged] = _deployed(one, grid)["ledger"]["releases"]
    for party in range(PARTIES):
        paid, due = grid.paid(party), charged["guarantee"]["epsilon"]
        if not paid:
            raise CheckFailed(f"party {party} has paid nothing")
        if paid > due * (1 + 1e-9):
            more, due = apart(paid, due)
            raise CheckFailed(f"a party has paid an epsilon of {more}, more than the {due} that are charged")


def _deployed(one: Checked, grid: SitesGrid, **changes: Any) -> dict[str, Any]:
    """What a run with sites says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        deployed = {"simulation": False, "noise_seed": None, "draws": 1, "parties_per_node": 1, **changes}
        plan = small_plan(one.found, one.kind, one.options, Path(folder), **deployed)
        small_run(plan, Placement(plan.terms.parties, 1, provider(one.found.requires), SEED), grid)
        return dict(json.loads((Path(folder) / "world.json").read_text()))


def _audit(one: Checked) -> None:
    """The claim stands on its worst case, and half of the noise is seen there."""
    if not _private(one):
        return
    public = _public(one)
    finding = audit_variant(one.variant, _EPSILON, public)
    if finding is None:
        return
    if not finding.result.passed:
        raise CheckFailed(
            f"epsilon {finding.result.lower_bound:.3f} at least is spent, {finding.result.claimed:.3f} is claimed"
        )
    if finding.twin.passed:
        raise CheckFailed(
            f"with half of the noise its worst case shows epsilon {finding.twin.lower_bound:.3f}, below the claim "
            f"{finding.twin.claimed:.3f}: the audit has no power"
        )


def _replay(one: Checked) -> None:
    """What rounds release moves as was planned, and nothing else decides later queries and the model."""
    worst = one.chosen.worst_case(1, _public(one))
    if one.chosen.place is not Place.AGGREGATOR or not isinstance(worst, TrustedWorstCase):
        return
    if begun(worst, one.variant, _EPSILON, _DELTA).rounds_of_noise() is None:
        return
    found = replayed(worst, one.variant, _EPSILON, _DELTA)
    here, there = found.values
    moved = float(np.linalg.norm(here - there, axis=1).max(initial=0.0))
    if moved > found.planned.sensitivity:
        more, planned = apart(moved, found.planned.sensitivity)
        raise CheckFailed(f"one party moves the value of a round by {more}, and {planned} was planned")
    if found.differing:
        raise CheckFailed(f"equal releases are followed by different queries '{found.differing}'")
    try:
        np.testing.assert_equal(*(session.learn(0) for session in found.sessions))
    except AssertionError as error:
        raise CheckFailed("equal releases lead to different models") from error


def _generic_audit(one: Checked) -> None:
    """The claim stands on a pair of neighbours that is not the protocol's own."""
    worst = one.chosen.worst_case(1, _public(one))
    if not _private(one) or not isinstance(worst, PrivateWorstCase):
        return
    session = begun(worst, one.variant, _EPSILON, _DELTA)
    question, charged = private_question(session), session.guarantee
    if not isinstance(charged, Guarantee) or question.shared:  # of one share nothing is promised
        return
    result = audit_sides(
        generic_sampler(worst, charged.unit, question, _RUNS),
        claim(one.variant, _EPSILON, _public(one), charged),
        _RUNS,
    )
    if not result.passed:
        raise CheckFailed(f"epsilon {result.lower_bound:.3f} at least is spent, {result.claimed:.3f} is claimed")


_CHECKS: tuple[Check, ...] = (
    _plain_options,
    _checked_options,
    _idle_options,
    _wire,
    _bounded_questions,
    _cohorts,
    _dropouts,
    _gate,
    _paid,
    _replay,
    _audit,
    _generic_audit,
)


def _public(one: Checked) -> PublicNumbers:
    real = one.found.requires.labels == "real"
    return PublicNumbers(_DELTA, classes=None if real else 2, label_range=(0.0, 1.0) if real else None)


def _private(one: Checked) -> bool:
    return one.chosen.place in (Place.PARTY, Place.SHARES, Place.AGGREGATOR)


def _cohort(one: Checked) -> Cohort:
    return Cohort(provider(one.found.requires).to_json(), 0, PARTIES, SEED)


def _released(one: Checked, mode: str = "honest", per_node: int = PARTIES, **changes: Any) -> bytes:
    """The bytes of a release of a small world."""
    with tempfile.TemporaryDirectory() as folder:
        plan = small_plan(one.found, one.kind, one.options, Path(folder), parties_per_node=per_node, **changes)
        holdings = provider(one.found.requires, mode)
        return small_run(plan, Placement(plan.terms.parties, per_node, holdings, SEED)).read_bytes()
