"""Whatever an aggregator asks of a deployed party, only what is paid for tells of a label: no failure does."""

import copy
import json
import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord
from support.examples import every_third
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.plugins import Reference
from federation.contract.query import Question, ReleaseId
from federation.engines.codec import decode_question, encode_question
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from federation.mechanisms.labels.unbiased_response import table
from federation.queries.labels import BagSums, LabelledRows
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort, Holdings
from parties.site.accounts import Account, Accounts, Allowances, Journal
from parties.site.worker import cost_of

ROWS = 8


class Party:
    """Rows (1, x) with labels 0 but for the first, which is `first` as a text that a float is read from."""

    def __init__(self, first: str) -> None:
        self._labels = np.zeros(ROWS)
        self._labels[0] = float(first)

    def holdings(self, party: int) -> Holdings:
        return Holdings(party, np.column_stack([np.ones(ROWS), np.arange(ROWS)]), self._labels)

    def evaluation(self) -> None:
        return None


class Charging:
    """One party at a site where what protects one label may cost (`epsilon`, `delta`) in all."""

    def __init__(self, folder, cohort, epsilon, delta):
        account = Account(Unit.LABEL, Adjacency.REPLACE, epsilon, delta)
        allowances = Allowances((account,), features_are_public=cohort.public_features)
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


LABELS = ("0", "1", "nan", "-inf", "1e300")
PUBLIC = LabelledRows(FeatureMap(2, ()), -1.0, 1.0, ROWS)
STRATIFIED = BagSums(ROWS, 2, 4, "signs", 2, 0)
FIXED = BagSums(ROWS, 2, 4, "gaussian", 0, ROWS)
ASKED = ReleaseId("asked")
TABLE = table(1.0)


def aimed(kind, noise, known, **parts):
    question = QUESTIONS[kind]
    aim = replace(question.noise, **{"kind": noise, "epsilon": 1.0, "delta": 1e-3, **known})
    return replace(question, noise=aim, rows=PUBLIC, release=ASKED, **parts)


def bags(design=STRATIFIED, noise="gaussian", **known):
    return aimed("bag_sums", noise, known, design=design)


def secret(design=FIXED, noise="gaussian", **known):
    return aimed("weighted_sums", noise, known, design=design)


def single(noise="one_bit", **known):
    return aimed("private_labels", noise, known)


def sums(noise="gaussian", shape="optimal", **known):
    return aimed("label_sums", noise, known, shape=shape)


@dataclass(frozen=True)
class Crafted:
    """An ordinary question in which an aggregator changes parts, by their names, past all that would refuse it."""

    question: Question
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def whole(self):
        """The question itself, as if nobody had checked it."""
        crafted = copy.copy(self.question)
        for name, value in self.changes.items():
            *path, last = name.split(".")
            part = crafted
            for step in path:
                object.__setattr__(part, step, copy.copy(getattr(part, step)))
                part = getattr(part, step)
            object.__setattr__(part, last, value)
        return crafted

    def received(self):
        """As it arrives over the wire, parts that a question does not have included. Raises `InputError`."""
        records = encode_question(self.whole)
        settings = json.loads(records["settings"]["json"])
        for name, value in self.changes.items():
            if not isinstance(value, FeatureMap):
                settings[name] = value
        records["settings"] = ConfigRecord({"json": json.dumps(settings)})
        return decode_question(records, type(self.question))


def node(path, first="0", epsilon=1.0, delta=1e-3):
    path.mkdir(exist_ok=True)
    provider = Reference(f"{__name__}:Party", {"first": first})
    return Charging(path, Cohort(provider.to_json(), 0, 1, None, public_features=True), epsilon, delta)


def asked(site, question, received=False):
    """What leaves a deployed party: arrays, or why there are none."""
    try:
        if isinstance(question, Crafted):
            question = question.received() if received else question.whole
        return site.answered(question)
    except Exception as error:  # as a site does, which tells nothing of it
        return type(error).__name__


ORDINARY = {
    "bags": bags(),
    "bags, laplace": bags(noise="laplace"),
    "bags, fixed": bags(FIXED),
    "secret": secret(),
    "one bit": single(),
    "laplace": single("laplace"),
    "gaussian": single("gaussian"),
    "unbiased": single("unbiased", outputs=TABLE[0], weights=TABLE[1]),
    "bins": single("bins"),
    "estimated bins": single("estimated_bins"),
    "sums": sums(),
    "sums, pure": sums("pure"),
    "sums, auto": sums("auto", "isotropic"),
}


SOME = {name: ORDINARY[name] for name in ("bags", "secret", "one bit", "unbiased", "bins", "estimated bins", "sums")}


def with_range(question, low, high):
    return Crafted(question, {"rows.lowest": low, "rows.highest": high})


def designed(question, change):
    return Crafted(question, {f"design.{key}": value for key, value in change.items()})


RANGES = {
    "wide": (-8e307, 8e307),
    "too wide": (-1.7e308, 1.7e308),
    "far": (1e300, 1.1e300),
    "narrow": (0.0, 1e-30),
    "subnormal": (0.0, 5e-324),
    "rounded": (0.0, 1.5 * 2**20 * 5e-324),
    "reversed": (1.0, -1.0),
    "empty": (0.0, 0.0),
    "nan": (math.nan, 1.0),
    "infinite": (-math.inf, math.inf),
    "text": ("0", "1"),
    "bool": (False, True),
    "long": (-(10**400), 10**400),
    "inside": (0.29, 0.31),
}
LOUD = ((2**32 - 1, 1), (1, 2**32 - 1))
TABLES = (
    ("outputs", ()), ("outputs", (0.0, math.inf)), ("outputs", (1.0, -1.0)), ("outputs", "01"), ("weights", ()),
    ("weights", LOUD), ("weights", TABLE[1][:1]), ("weights", TABLE[1] * 3), ("weights", [row[1:] for row in TABLE[1]]),
    ("weights", [[1.0 * weight for weight in row] for row in TABLE[1]]), ("weights", [[True] * len(TABLE[0])] * 17),
    ("weights", [[10**400, *row[1:]] for row in TABLE[1]]), ("weights", [[-1, *row[1:]] for row in TABLE[1]]),
)  # fmt: skip
OVERFLOW = FeatureMap(2, (Affine(np.zeros(2), np.full(2, 1e308)),))
HUGE = FeatureMap(2, (Affine(np.zeros(2), np.array([1e300, 1e-300])),))
CRAFTED = {
    **{f"{name}, {text}": with_range(question, *ends) for name, question in ORDINARY.items()
       for text, ends in RANGES.items()},
    **{f"{name}, {text}": Crafted(question, {"rows.feature_map": feature_map})
       for name, question in SOME.items() for text, feature_map in (("overflow", OVERFLOW), ("huge", HUGE))},
    **{f"{name}, most {most!r}": Crafted(question, {"rows.most": most})
       for name, question in SOME.items() for most in (0, ROWS - 1, 8.5, "8", None)},
    **{f"{name}, {draws!r} draws": Crafted(question, {"draws": draws})
       for name, question in SOME.items() for draws in (0, 2, 1.0, True, "1")},
    **{f"{name}, {part}={value!r}": Crafted(question, {part: value})
       for name, question in SOME.items() for part, value in (
           ("seeded", True), ("seeded", 1), ("release.name", ""), ("release.name", None), ("release.name", "x" * 2000),
           ("release.queries", 0), ("release.queries", 2), ("release.query", 1), ("release.query", -1))},
    **{f"{name}, {key}={value!r}": Crafted(question, {f"noise.{key}": value})
       for name, question in SOME.items() for key, value in (
           ("epsilon", 0), ("epsilon", math.nan), ("epsilon", math.inf), ("epsilon", "1"), ("epsilon", 1e-300),
           ("epsilon", 10**400), ("delta", 1.0), ("delta", math.nan), ("delta", -1), ("kind", "off"),
           ("kind", "published"), ("kind", ["gaussian"]), ("kind", None), ("floor", 1), ("label_range", [0, 1]),
           ("outside", "clip"), ("prior", [1.0, 0.0]), ("prior", [0.5] * 1000), ("points", 2), ("points", 10**9),
           ("share", 1 - 1e-16), ("share", 1e-300), ("debiased", True))},
    **{f"unbiased, {part}={value!s:.40}": Crafted(ORDINARY["unbiased"], {f"noise.{part}": value})
       for part, value in TABLES},
    **{f"bags, sigma={sigma!r}": Crafted(bags(), {"noise.sigma": sigma})
       for sigma in (1e-300, 1e-9, math.nan, 0, True, "1", 1e9)},
    **{f"weights {weights!r}, {noise}": Crafted(bags(noise=noise), {"design.weights": weights})
       for weights in ("gaussian", "ones", None, "") for noise in ("gaussian", "laplace")},
    **{f"{noise}, design {change}": designed(bags(noise=noise), change)
       for noise in ("gaussian", "laplace") for change in (
           {"per_bag": 0}, {"per_bag": -1}, {"per_bag": 5}, {"per_bag": 1.5}, {"per_bag": True},
           {"per_bag": 0, "noisy": 1}, {"records": 9}, {"records": 8.5}, {"bags": 3}, {"bags": 0},
           {"size": -4, "bags": -2}, {"size": 2.0})},
    **{f"secret {change}": designed(secret(), change) for change in (
        {"records": 9}, {"records": 8.5}, {"bags": 3}, {"bags": 0}, {"size": 2.0}, {"bags": "2"})},
}  # fmt: skip


@pytest.mark.parametrize("first", ["0", "1", "nan", "1e300"])
def test_ordinary_questions_are_answered(tmp_path, first):
    for number, question in enumerate(ORDINARY.values()):
        sent = asked(node(tmp_path / str(number), first), question)
        assert len(sent.parties) == 1
        assert all(np.isfinite(array).all() for array in sent.arrays.values())


@pytest.mark.parametrize(
    "received", [pytest.param(False, marks=pytest.mark.slow, id="unchecked"), pytest.param(True, id="received")]
)
@pytest.mark.parametrize("name", every_third(CRAFTED))
def test_no_label_decides_whether_a_question_is_answered_or_what_it_costs(name, received, tmp_path):
    seen = set()
    for number, first in enumerate(LABELS):
        site = node(tmp_path / str(number), first)
        sent = asked(site, CRAFTED[name], received)
        outcome = sent if isinstance(sent, str) else (len(sent.parties), tuple(sent.failures.values()))
        seen.add((outcome, str(site.charged)))
    if "estimated" in name and "prior" not in name and len(seen) > 1:  # a noisy histogram, paid for, may fail
        assert len({paid for _, paid in seen}) == 1
        return
    assert len(seen) == 1


def test_a_part_that_a_question_does_not_have_is_refused():
    for name, crafted in CRAFTED.items():
        strange = {part.split(".")[1] for part in crafted.changes if part.startswith("noise.")}
        if strange - {known.name for known in fields(crafted.question.noise)}:
            with pytest.raises(InputError):
                crafted.received()
            assert asked(None, crafted, received=True) == "InputError", name


@pytest.mark.parametrize("sigma", [1e-6, 0.1, 1.0, 30.0])
def test_a_given_sigma_costs_the_delta_that_it_has(sigma, tmp_path):
    """On signs in bags of full noise: the Gaussian mechanism's delta (Balle, Wang 2018, Theorem 8)."""
    from scipy.stats import norm

    design = BagSums(ROWS, 2, 4, "signs", 4, 0)
    ratio = 2.0 / (sigma * 2)
    exact = norm.cdf(ratio / 2 - 1 / ratio) - math.e * norm.cdf(-ratio / 2 - 1 / ratio)
    question = bags(design, sigma=sigma, delta=1 - 1e-7)
    if exact < 0.999:
        site = node(tmp_path / "generous", delta=0.999999)
        assert len(asked(site, question).parties) == 1
        [charged] = site.charged
        assert (charged.epsilon, charged.delta) == (1.0, pytest.approx(exact, rel=1e-4, abs=1e-9))
    answer = asked(node(tmp_path / "careful"), question)
    assert (not isinstance(answer, str) and len(answer.parties) == 1) == (exact <= 1e-3)


def test_a_sigma_that_misses_the_declared_delta_is_refused_however_large_the_allowance(tmp_path):
    site = node(tmp_path, delta=0.999)
    for sigma in (1e-6, 0.1):
        with pytest.raises(InputError):
            site.answered(bags(sigma=sigma))
    assert site.charged == []


def test_exact_sums_of_labels_are_computed_in_simulations_only(tmp_path, monkeypatch):
    """They may overflow, and a release that fails because of a label tells of it."""
    from parties.responses import labels as bag_sums

    seen, real = [], bag_sums.sketches
    monkeypatch.setattr(
        bag_sums, "sketches", lambda rows, labels, *rest: seen.append(labels) or real(rows, labels, *rest)
    )
    assert len(asked(node(tmp_path, first="1"), secret()).parties) == 1
    assert not np.any(seen)


@pytest.mark.parametrize(("part", "value"), TABLES, ids=lambda value: f"{value!s:.30}")
def test_a_table_that_does_not_keep_its_epsilon_is_never_answered_by(part, value, tmp_path):
    crafted, site = Crafted(ORDINARY["unbiased"], {f"noise.{part}": value}), node(tmp_path)
    for received in (False, True):
        assert isinstance(asked(site, crafted, received), str)
    assert site.charged == []


def test_a_table_is_for_its_epsilon_and_for_more(tmp_path):
    for epsilon, answered_by in ((1 - 1e-6, 0), (1.0, 1), (1.5, 1)):
        site = node(tmp_path / str(epsilon), epsilon=2.0)
        sent = asked(site, single("unbiased", epsilon=epsilon, outputs=TABLE[0], weights=TABLE[1]))
        assert (0 if isinstance(sent, str) else len(sent.parties)) == answered_by
        assert len(site.charged) == answered_by


def test_few_of_many_rows_are_released_in_a_simulation_only(tmp_path):
    """A release of one exact label out of n has a delta of 1/n only; nobody should be asked for it."""
    one = BagSums(ROWS, 1, 1, "gaussian", 1, 0)
    generous = node(tmp_path, delta=0.5)
    for question in (
        bags(one, delta=0.3),
        secret(one, delta=0.3),
        bags(replace(one, weights="signs"), sigma=1e-3, delta=0.3),
    ):
        with pytest.raises(InputError):
            generous.answered(question)
    assert generous.charged == []
    provider = Reference(f"{__name__}:Party", {"first": "0"}).to_json()
    assert len(answered(Cohort(provider, 0, 1, 7), bags(one)).parties) == 1
