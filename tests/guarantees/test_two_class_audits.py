"""Audits of what parties send about rows of two classes: claims of whole answers stand, broken parties are refuted."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.claims import CLAIMS
from support.worst_pairs import audited, mistake_mechanism, sum_of

from aggregator.protocols.error_marginals.session import WorstExchange
from aggregator.protocols.mean_operator import session as worst_sums
from aggregator.protocols.mean_operator.session import WorstSums
from aggregator.regressions.worst_case import WorstLabels
from federation.contract.errors import InputError
from federation.contract.query import ReleaseId
from federation.features.feature_map import FeatureMap
from federation.mechanisms.sums.row_sums import SummedResponse
from federation.queries.marginals import exchange_noise
from federation.queries.row_sums import MomentNoise, MomentQuestion
from parties.responses import marginals as error_marginals
from scenarios.audits.auditor import sampler

pytestmark = pytest.mark.slow  # by default `test_audits` checks each claim, and that half of its noise is caught

RUNS = {WorstSums: 60_000, WorstExchange: 40_000, WorstLabels: 4_000}
MOMENTS = ["moments, laplace", "moments, pure", "moments, gaussian"]
EXCHANGES = [name for name in CLAIMS if name.startswith("marginals") and "shares" not in name]
ADDED = ["marginals, pure", "marginals, gaussian"]
FEW = 30_000  # runs, each drawn by every party


@dataclass(frozen=True, eq=False)
class OneMore(WorstExchange):
    """An exchange in which one query more than was agreed on is asked, and answered."""

    def asked(self, question, runs):
        return [replace(one, release=replace(one.release, queries=agreed(question))) for one in
                super().asked(one_more(question), runs)]  # fmt: skip


def agreed(question):
    return question.release.queries


def one_more(question):
    return replace(question, release=replace(question.release, queries=agreed(question) + 1))


def judged(pair):
    return audited(pair, next(runs for kind, runs in RUNS.items() if isinstance(pair.worst, kind)))


@pytest.mark.parametrize("name", [f"{name} shares" for name in MOMENTS])
def test_fewer_shares_than_were_agreed_on_are_refuted(name):
    pair, missing = (CLAIMS[name].pair(units) for units in (1, 2))
    agreed = pair.question.contributors
    assert pair.worst.parties(pair.question, 1) == agreed
    assert missing.worst.parties(missing.question, 1) == agreed // 2  # as every audit has it
    assert not judged(sum_of(pair, range(agreed // 2))).passed


@pytest.mark.parametrize("name", [name for name in CLAIMS if name.startswith("marginals") and "shares" in name])
def test_shares_of_an_exchange_for_more_parties_than_are_summed_are_refuted(name, monkeypatch):
    pair, missing = (CLAIMS[name].pair(units) for units in (1, 2))
    assert (pair.worst.parties(pair.question, 1), missing.worst.parties(missing.question, 1)) == (3, 1)
    all_count = replace(pair.question, contributors=6)  # where three are honest
    monkeypatch.setattr(WorstExchange, "added", lambda self, question: 3)  # whatever they were told
    assert not audited(replace(pair, question=all_count), FEW).passed


def test_published_noise_is_refuted_at_its_own_claim():
    """Patrini et al. (2015, Algorithm 2) on 25 features: rows of L2 norm 1 have L1 norms of up to 5."""
    noise, release = MomentNoise("published_laplace", 1.0), ReleaseId("published")
    question = MomentQuestion(noise, FeatureMap(25, ()), 4, 4, "label", 0, release=release, seeded=True)
    result = judged(replace(CLAIMS["moments, published"].pair(), question=question))
    assert result.claimed == pytest.approx(5.0, rel=1e-6)
    assert 2.0 < result.lower_bound <= 5.0


class Halved:
    """Noise on twice the sum, then the half."""

    def __init__(self, question):
        self.noise = replace(question, most=2 * question.most).mechanism()
        self.noise_norm = self.noise.noise_norm

    def release(self, total, bits, draws):
        return self.noise.release(2 * total, bits, draws) / 2


def flip_half_as_often(monkeypatch):
    honest = SummedResponse.release

    def release(self, *arguments):
        return honest(SummedResponse(replace(self.labels, redraw=self.labels.redraw // 2)), *arguments)

    monkeypatch.setattr(SummedResponse, "release", release)


class TestBrokenSums:
    @pytest.mark.parametrize("name", MOMENTS)
    def test_noise_for_half_of_what_a_row_moves_is_refuted(self, name, monkeypatch):
        mistake_mechanism(monkeypatch, Halved)
        assert not judged(CLAIMS[name].pair()).passed

    @pytest.mark.parametrize("name", ["moments, auto, of few rows", "moments, auto"])
    def test_too_little_noise_on_one_side_of_the_threshold_is_refuted(self, name, monkeypatch):
        pair = CLAIMS[name].pair()
        assert pair.question.by_size
        with monkeypatch.context() as few:
            flip_half_as_often(few)
            assert not judged(pair).passed
        assert judged(pair).passed
        mistake_mechanism(monkeypatch, Halved)
        assert not judged(pair).passed

    @pytest.mark.parametrize("name", MOMENTS)
    def test_rows_that_are_not_cut_are_refuted(self, name, monkeypatch):
        """Of norm 2, which the map leaves as they are."""
        pair = CLAIMS[name].pair()
        pair = replace(pair, question=replace(pair.question, feature_map=FeatureMap(2, ())))
        monkeypatch.setattr(worst_sums, "worst_row", lambda question: np.full(2, 2**0.5))
        result = judged(pair)
        assert result.claimed / 2 < result.lower_bound <= result.claimed
        monkeypatch.setattr("parties.responses.row_sums.within_norm", lambda rows, l1_bound: rows)
        assert not judged(pair).passed

    def test_a_bound_in_l1_that_nobody_keeps_is_refuted(self, monkeypatch):
        pair = CLAIMS["moments, short rows"].pair()
        monkeypatch.setattr(worst_sums, "worst_row", lambda question: np.ones(2))
        monkeypatch.setattr("parties.responses.row_sums.within_norm", lambda rows, l1_bound: rows)
        assert not judged(pair).passed


class TestBrokenExchanges:
    @pytest.mark.parametrize("name", EXCHANGES)
    def test_half_the_noise_is_refuted(self, name, monkeypatch):
        def mistaken(question):
            noise = question.mechanism()
            if name != "marginals, published":
                return replace(noise, scale=noise.scale / 2)
            return replace(noise, epsilon=2 * noise.epsilon)

        mistake_mechanism(monkeypatch, mistaken)
        assert not judged(CLAIMS[name].pair()).passed

    @pytest.mark.parametrize("name", EXCHANGES)
    def test_a_query_more_than_was_agreed_on_is_refuted(self, name, monkeypatch):
        pair = replace(CLAIMS[name], options={**CLAIMS[name].options, "rounds": 1}).pair()
        pair = replace(pair, worst=OneMore(**vars(pair.worst)))
        assert agreed(pair.question) == 1
        with pytest.raises(InputError, match="2"):
            judged(pair)
        monkeypatch.setattr(ReleaseId, "__post_init__", lambda self: None)
        # Each answer still has noise of its own.
        monkeypatch.setattr(ReleaseId, "key", property(lambda self: f"{self.name}|query {self.query}"))
        assert not judged(pair).passed

    @pytest.mark.parametrize("name", [*ADDED, *(f"{name}, replaced" for name in ADDED)])
    def test_noise_for_one_column_of_two_or_for_rows_that_are_added_only_is_refuted(self, name, monkeypatch):
        def mistaken(question):
            if "replaced" in name:
                return replace(question, adjacency="add_remove").mechanism()
            return exchange_noise(question.noise, 1, question.release.queries, question.protect, question.adjacency, 0)

        mistake_mechanism(monkeypatch, mistaken)
        assert not audited(CLAIMS[name].pair(), 120_000).passed

    @pytest.mark.parametrize("name", [*ADDED, *(f"{name}, replaced" for name in ADDED)])
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
        pair = CLAIMS[name].pair()
        monkeypatch.setattr(error_marginals, function, mistaken)
        assert not judged(pair).passed


def test_randomised_response_with_half_the_noise_is_refuted(monkeypatch):
    flip_half_as_often(monkeypatch)
    assert not judged(CLAIMS["randomised responses"].pair()).passed


@pytest.mark.parametrize("name", ["moments, pure", "marginals, pure", "marginals, gaussian, label"])
def test_releases_of_one_audit_are_independent(name):
    pair, runs = CLAIMS[name].pair(), 20_000
    seen = pair.seen(False, "independent", runs)
    told = sampler(pair.worst, pair.question, "audit|independent")(False, runs)
    assert told.shape == (runs,)
    assert abs(np.corrcoef(told[1:], told[:-1])[0, 1]) < 5 / runs**0.5
    for name in ("sums", "errors"):
        if name in seen:
            numbers = seen[name].reshape(runs, -1)
            assert np.abs(np.corrcoef(numbers.T) - np.eye(numbers.shape[1])).max() < 5 / runs**0.5
