"""Audits of what parties send about rows of two classes: claims of whole answers stand, broken parties are refuted."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from federation.questions.bags import Noising
from federation.features import FeatureMap
from federation.questions.marginals import Exchange
from federation.questions.marginals import marginal_noise
from federation.questions.moments import MomentQuestion
from federation.questions.moments import moment_noise
from aggregator.contract.registry import protocol
from parties import error_marginals
from scenarios.audits import audit_two_classes
from scenarios.audits.audit_bags import audit_pair
from scenarios.audits.audit_labels import LabelPair
from scenarios.audits.audit_two_classes import ExchangePair, SumPair, TwoClassSetting, two_class_question_of
from scenarios.settings.sweep import Variant

RUNS = {SumPair: 60_000, ExchangePair: 40_000, LabelPair: 4_000}
SECURE = {"summation": "secure"}
SUMS = {
    "laplace": {"noise": "laplace"},
    "pure": {"noise": "pure"},
    "gaussian": {"noise": "gaussian"},
    "published laplace": {"noise": "published_laplace"},
    "laplace, short rows": {"noise": "laplace", "l1_bound": 1.2},
    "rows": {"protect": "row", "noise": "pure"},
    "waves": {"noise": "laplace", "expansion": "fourier"},
    "monomials": {"noise": "gaussian", "expansion": "polynomial"},
}
SHARES = {name: {"noise": name, **SECURE} for name in ("laplace", "pure", "gaussian")}
CELLS = {
    "pure": {"noise": "pure"},
    "gaussian": {"noise": "gaussian"},
    "pure, replaced": {"noise": "pure", "adjacency": "replace"},
    "gaussian, replaced": {"noise": "gaussian", "adjacency": "replace"},
    "pure, label": {"noise": "pure", "protect": "label"},
    "gaussian, label": {"noise": "gaussian", "protect": "label"},
    "published": {"noise": "published", "protect": "label"},
}
ADDED = ("pure", "gaussian")


def question_of(kind, options):
    variant = Variant("a variant", kind, asdict(protocol(kind)(**options)), {}, False)
    return two_class_question_of(variant, TwoClassSetting(1.0, 0.01))


def sums(name, changed=1):
    return SumPair(question_of("mean_operator", SUMS[name]), changed, (0,))


def shares(name, parties):
    return SumPair(question_of("mean_operator", SHARES[name]), 1, tuple(range(parties)))


def cells(name, units=1, queries=2, rounds=2):
    return ExchangePair(question_of("error_marginals", CELLS[name] | {"rounds": rounds}), units, queries)


def responses(changed=1):
    return LabelPair(question_of("mean_operator", {"noise": "randomised_response"}), changed)


def audited(pair):
    return audit_pair(pair, runs=RUNS[type(pair)], confidence=0.999)


def require_tight(result):
    assert result.claimed / 2 < result.lower_bound <= result.claimed


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_as_private_as_it_promises_and_hardly_more(name):
    result = audited(sums(name))
    assert result.claimed == pytest.approx(3**0.5 if "published" in name else 1.0, rel=1e-6)
    require_tight(result)
    assert not audited(sums(name, changed=2)).passed


@pytest.mark.parametrize("name", SHARES)
def test_shares_hide_in_their_sum_what_was_promised_and_fewer_of_them_do_not(name):
    agreed = question_of("mean_operator", SHARES[name]).contributors
    require_tight(audited(shares(name, agreed)))
    assert not audited(shares(name, agreed // 2)).passed


def test_one_share_hides_nothing_by_itself():
    assert not audited(shares("laplace", 1)).passed


@pytest.mark.parametrize("name", CELLS)
def test_all_answers_of_an_exchange_are_as_private_together_as_it_promises(name):
    result = audited(cells(name))
    assert result.claimed == 1.0
    require_tight(result)
    assert not audited(cells(name, units=2)).passed


def test_private_labels_of_two_classes_are_as_private_as_promised():
    require_tight(audited(responses()))
    assert not audited(responses(changed=2)).passed


def test_published_noise_is_refuted_at_its_own_claim():
    """Patrini et al. (2015, Algorithm 2) on 25 features: rows of L2 norm 1 have L1 norms of up to 5."""
    noising = Noising({"noise": "published_laplace", "epsilon": 1.0, "delta": 0.0}, 1, "published", True)
    result = audited(SumPair(MomentQuestion(FeatureMap(25, ()), 4, "label", 0, noising), 1, (0,)))
    assert result.claimed == pytest.approx(5.0, rel=1e-6)
    assert 2.0 < result.lower_bound <= 5.0


def halved(noise):
    return lambda question: replace(noise(question), scale=noise(question).scale / 2)


class TestBrokenSums:
    @pytest.mark.parametrize("name", ["laplace", "pure", "gaussian"])
    def test_noise_for_half_of_what_a_row_moves_is_refuted(self, name, monkeypatch):
        class Halved:
            """Noise on twice the sum, then the half."""

            def __init__(self, question):
                self.noise = moment_noise(replace(question, most=2 * question.most))

            def release(self, total, bits, draws):
                return self.noise.release(2 * total, bits, draws) / 2

        monkeypatch.setattr("parties.moments.moment_noise", Halved)
        assert not audited(sums(name)).passed

    @pytest.mark.parametrize("name", ["laplace", "pure", "gaussian"])
    def test_rows_that_are_not_cut_are_refuted(self, name, monkeypatch):
        """Of norm 2, which the map leaves as they are."""
        pair = sums(name)
        pair = replace(pair, question=replace(pair.question, feature_map=FeatureMap(2, ())))
        monkeypatch.setattr(audit_two_classes, "worst_row", lambda question: np.full(2, 2**0.5))
        require_tight(audited(pair))
        monkeypatch.setattr("parties.moments.within_norm", lambda rows, l1_bound: rows)
        assert not audited(pair).passed

    def test_a_bound_in_l1_that_nobody_keeps_is_refuted(self, monkeypatch):
        pair = sums("laplace, short rows")
        monkeypatch.setattr(audit_two_classes, "worst_row", lambda question: np.ones(2))
        monkeypatch.setattr("parties.moments.within_norm", lambda rows, l1_bound: rows)
        assert not audited(pair).passed


class TestBrokenExchanges:
    @pytest.mark.parametrize("name", CELLS)
    def test_half_the_noise_is_refuted(self, name, monkeypatch):
        def mistaken(question):
            noise = marginal_noise(question)
            if name != "published":
                return replace(noise, scale=noise.scale / 2)
            return replace(noise, epsilon=2 * noise.epsilon)

        pair = cells(name)
        monkeypatch.setattr(error_marginals, "marginal_noise", mistaken)
        assert not audited(pair).passed

    @pytest.mark.parametrize("name", CELLS)
    def test_a_query_more_than_was_agreed_on_is_refuted(self, name, monkeypatch):
        pair = cells(name, queries=2, rounds=1)
        monkeypatch.setattr(Exchange, "__post_init__", lambda self: None)
        assert not audited(pair).passed

    @pytest.mark.parametrize("name", [*ADDED, "pure, replaced", "gaussian, replaced"])
    def test_exact_corrects_beside_noisy_errors_are_refuted(self, name, monkeypatch):
        def mistaken(question, noise, unit, errors, corrects, bits):
            noisy = errors if noise is None else noise.release(errors, bits)
            return {"errors": noisy, "rows": noisy + corrects}

        self.refuted(name, "released", mistaken, monkeypatch)

    @pytest.mark.parametrize("name", ADDED)
    def test_empty_bins_without_noise_are_refuted(self, name, monkeypatch):
        honest = error_marginals.released

        def mistaken(question, noise, unit, errors, corrects, bits):
            sent = honest(question, noise, unit, errors, corrects, bits)
            return {name: np.where(errors + corrects > 0, cells, 0) for name, cells in sent.items()}

        self.refuted(name, "released", mistaken, monkeypatch)

    @pytest.mark.parametrize("name", ADDED)
    def test_bins_that_overlap_are_refuted(self, name, monkeypatch):
        honest = error_marginals.counts

        def mistaken(bins, features):
            own = honest(bins, features)
            return own + np.append(0, own[:-1])

        self.refuted(name, "counts", mistaken, monkeypatch)

    def refuted(self, name, function, mistaken, monkeypatch):
        pair = cells(name)
        monkeypatch.setattr(error_marginals, function, mistaken)
        assert not audited(pair).passed


def test_randomised_response_with_half_the_noise_is_refuted(monkeypatch):
    from federation.questions.labels import labels_mechanism

    def halved(question):
        mechanism = labels_mechanism(question)
        return replace(mechanism, redraw=mechanism.redraw // 2)

    monkeypatch.setattr("parties.private_labels.labels_mechanism", halved)
    assert not audited(responses()).passed


@pytest.mark.parametrize("pair", [sums("pure"), cells("pure"), cells("gaussian, label")])
def test_releases_of_one_audit_are_independent(pair):
    runs = 20_000
    answer = pair.answer(0, "independent", runs)
    seen = pair.statistic(answer.guarantee.mechanism)({name: array[0] for name, array in answer.arrays.items()})
    assert seen.shape == (runs,)
    assert abs(np.corrcoef(seen[1:], seen[:-1])[0, 1]) < 5 / runs**0.5
    for name in ("sums", "errors"):
        if name in answer.arrays:
            numbers = answer.arrays[name][0].reshape(runs, -1)
            assert np.abs(np.corrcoef(numbers.T) - np.eye(numbers.shape[1])).max() < 5 / runs**0.5
