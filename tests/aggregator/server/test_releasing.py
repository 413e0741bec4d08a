from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.two_class_questions import marginals
from support.worlds import run

from aggregator.contract.ledger import Budget, Ledger
from aggregator.contract.session import Perturbable
from aggregator.ensembles.output import Ensemble, VoteTally
from aggregator.server.releasing import Inquiry, Release, release
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import VariantPlan
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.query import ReleaseId
from federation.engines.inline import open_grid
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.queries.votes import Training, VotesQuestion


def released(plan, name="v", noise="pure", epsilon=1.0, ledger=None):
    perturbable = Perturbable(np.zeros(2), 0.1, lambda noisy, _: noisy.reshape(-1, 2, 1), (), (), noise=noise)
    return release(plan, name, epsilon, perturbable, ledger or Ledger())


def test_a_release_has_its_draws_and_its_guarantee_and_a_seeded_run_says_that_it_is_a_simulation(make_plan):
    ledger = Ledger()
    few, many = (released(make_plan(), epsilon=epsilon, ledger=ledger) for epsilon in (1.0, 10.0))
    assert (few.guarantee.epsilon, few.guarantee.delta) == (1.0, 0.0)
    assert few.weights.shape == many.weights.shape == (3, 2, 1)
    assert np.abs(few.weights).mean() > np.abs(many.weights).mean()
    assert len(ledger.entries) == 2
    for seed, expected in ((1, True), (None, False)):
        first = released(make_plan(noise_seed=seed), noise="gaussian")
        assert any("keyed by a seed" in a.text for a in first.guarantee.assumptions) is expected
    for count, expected in ((1, False), (3, True)):
        texts = [a.text for a in released(make_plan(draws=count)).guarantee.assumptions]
        assert any(f"one of the {count} draws is published" in text for text in texts) is expected
    plan = make_plan(noise_seed=None)
    draws = np.concatenate([released(plan).weights.ravel() for _ in range(2)])
    assert len(np.unique(draws)) == len(draws)


@pytest.mark.parametrize("change", [{"noise_seed": 1}, {"draws": 2}, {"individual": 3}, {"servers": "two"}])
def test_outside_a_simulation_nothing_is_seeded_or_repeated(make_plan, change):
    sound = {"simulation": False, "noise_seed": None, "draws": 1, "individual": 0}
    assert not make_plan(**sound).run.simulation
    with pytest.raises(InputError):
        make_plan(**{**sound, **change})


def test_equal_plans_draw_equal_noise_and_no_vote_is_written(make_plan):
    draw = [released(make_plan(), name).weights for name in ("a", "a", "b")]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not (draw[0] == draw[2]).any()
    settings = ((1.0, 1e-6), (2.0, 1e-6), (1.0, 1e-5))
    drawn = [released(make_plan(delta=d), noise="gaussian", epsilon=e).weights.ravel() for e, d in settings]
    correlations = [abs(np.corrcoef(drawn[0], other)[0, 1]) for other in drawn[1:]]
    assert max(correlations) < 0.99
    plan = make_plan(variants=(VariantPlan("soft_vote", "soft_vote", {}),))
    _, summary = run(open_grid("inline"), plan, 40)
    assert {path.name for path in Path(plan.run.directory).iterdir()} == {"world.json", "soft_vote.npz"}
    with np.load(Path(plan.run.directory) / "soft_vote.npz") as stored:
        assert not {name for name in stored.files if "vote" in name or "count" in name}
    assert set(summary) == {  # and seconds, which `run` takes out
        "ledger", "diagnostics", "outlooks", "remarks", "bytes_per_party", "individual", "failures", "failed_variants",
        "answered", "disclosure",
    }  # fmt: skip


def test_the_budget_stops_a_release_and_each_needs_a_guarantee(make_plan):
    ledger = Ledger(Budget(5.0, 1e-6))
    released(make_plan(), epsilon=1.0, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        released(make_plan(), epsilon=10.0, ledger=ledger)
    assert len(ledger.entries) == 1  # epsilon 1 fitted, epsilon 10 did not
    with pytest.raises(InputError, match="guarantee"):
        Release("v", np.zeros((1, 2, 3)), None)
    assert Release("v", np.zeros((1, 2, 3)), NoGuarantee("noise is off")).guarantee.to_dict()["non_private"]


class Averages:
    """A collector whose `recipe` says what it makes of the answers."""

    def __init__(self, clip=1.0):
        self.recipe = (clip,)


def tally(question):
    """Where votes of five parties go."""
    return Ensemble(PublicRows(question.training.feature_map, question.rows), VoteTally(question, 5))


@pytest.fixture
def training(public):
    return Training(fit(["unit_norm"], public.rows), 3, {"name": "logistic", "parameters": {}}, 0)


def test_equal_questions_are_asked_once_and_collectors_differ_by_their_recipes(training, public):
    inquiry = Inquiry()
    first, again = (VotesQuestion(training, np.array(public.rows)) for _ in range(2))
    kept = inquiry.add(first, training, tally(first))
    assert inquiry.add(again, training, tally(again)) is kept
    [(question, collectors)] = inquiry.questions()
    assert question is first
    assert collectors == [kept]
    more = [inquiry.add(again, training, Averages(clip)) for clip in (1.0, 2.0, 1.0)]
    assert more[0] is more[2]
    [(_, collectors)] = inquiry.questions()
    assert collectors == [kept, *more[:2]]
    for rows in (public.rows[:-1], public.rows + 1e-12):  # other rows are another question
        question = VotesQuestion(training, rows)
        inquiry.add(question, training, tally(question))
    assert (len(inquiry.questions()), len(list(inquiry.collectors()))) == (3, 5)


def test_questions_with_one_training_are_neighbours_and_a_round_asks_only_what_was_added_since_the_last(
    training, public
):
    other = replace(training, trial=1)
    inquiry = Inquiry()
    asked = [VotesQuestion(t, rows) for rows in (public.rows, public.rows[:9]) for t in (training, other)]
    for question in asked:
        inquiry.add(question, question.training, tally(question))
    assert [question.training.trial for question, _ in inquiry.questions()] == [0, 0, 1, 1]
    inquiry = Inquiry()
    first, second = (VotesQuestion(training, rows) for rows in (public.rows, public.rows[:9]))
    kept = inquiry.add(first, training, tally(first))
    inquiry.close()
    assert inquiry.questions() == []
    inquiry.add(second, training, tally(second))
    assert [question for question, _ in inquiry.questions()] == [second]
    assert inquiry.add(first, training, tally(first)) is kept
    assert len(list(inquiry.collectors())) == 2
    with pytest.raises(InputError):
        inquiry.add(first, training, Averages(2.0))


@pytest.mark.parametrize("change", [
    {"noise": CountsNoise("pure", 2.0, 0.0)}, {"bags": Bags(1, 3)}, {"draws": 2}, {"seeded": False},
], ids=lambda change: next(iter(change)))  # fmt: skip
@pytest.mark.parametrize("later", [False, True])
def test_two_different_questions_never_share_the_name_of_a_release(training, change, later):
    """Nor do they in different rounds: equal noise would cancel between their answers."""
    counts = CountsQuestion(CountsNoise("pure", 1.0, 0.0), Bags(2, 3), release=ReleaseId("a release"), seeded=True)
    inquiry = Inquiry()
    inquiry.add(counts, training, Averages())
    if later:
        inquiry.close()
    other = replace(counts, **change)
    with pytest.raises(InputError, match="counts"):
        inquiry.add(other, training, Averages())
    inquiry.add(replace(other, release=ReleaseId("another release")), training, Averages())
    assert len(list(inquiry.collectors())) == 2


def test_equal_questions_and_the_queries_of_one_exchange_share_the_name_of_a_release(training):
    inquiry = Inquiry()
    kept = inquiry.add(marginals(query=0), training, Averages())
    assert inquiry.add(marginals(query=0), training, Averages()) is kept
    inquiry.close()
    inquiry.add(marginals(query=1), training, Averages())
    assert [question.release.query for question, _ in inquiry.questions()] == [1]
