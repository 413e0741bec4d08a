"""Names of releases, kinds of noise, and how often a question may be asked."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import OFF, Declared, Field, Noise, PrivateQuestion, ReleaseId
from federation.queries.bags import CountsNoise
from federation.queries.labels import WeightedSumsNoise
from federation.queries.row_sums import MomentNoise


def test_the_noise_of_a_release_is_keyed_by_its_name_and_that_of_a_query_by_its_number_too():
    assert ReleaseId("a world|counts").key == "a world|counts"
    assert ReleaseId("a", 1, 0).key == "a"
    assert [ReleaseId("a", 3, query).key for query in range(3)] == ["a|query 0", "a|query 1", "a|query 2"]


@given(st.integers(1, 50))
def test_no_two_queries_of_a_release_share_noise(queries):
    assert len({ReleaseId("a", queries, query).key for query in range(queries)}) == queries


@pytest.mark.parametrize("name", ["", "x" * 1001, 3, None, b"a"])
def test_a_release_has_a_name(name):
    """Without one two releases would be one: the second would go unpaid, or be refused."""
    with pytest.raises(InputError, match="a release needs a name of 1 to 1000 characters"):
        ReleaseId(name)
    assert ReleaseId("x" * 1000).key == "x" * 1000


@pytest.mark.parametrize(("queries", "query"), [(1, 1), (3, 3), (3, 4)])
def test_there_are_as_many_queries_as_were_agreed_on(queries, query):
    with pytest.raises(InputError, match="begin a new one, whose noise is paid for again"):
        ReleaseId("a", queries, query)


@pytest.mark.parametrize(
    ("queries", "query", "name"),
    [(2.0, 0, "queries"), (True, 0, "queries"), (None, 0, "queries"), (0, 0, "queries"), (-1, -2, "queries"),
     (2, False, "query"), (2, "0", "query"), (3, -1, "query")],
)  # fmt: skip
def test_queries_are_whole_numbers(queries, query, name):
    with pytest.raises(InputError, match=f"{name} of a release must be a whole number"):
        ReleaseId("a", queries, query)


@pytest.mark.parametrize("noise", [CountsNoise, MomentNoise, WeightedSumsNoise])
def test_noise_that_is_off_aims_at_nothing(noise):
    """Questions without noise ask the same, whatever somebody aimed at in vain."""
    off = noise(OFF, 3.0, 0.5)
    assert (off.epsilon, off.delta, off.aims) == (0.0, 0.0, False)
    assert off == noise(OFF)
    assert off.named == (OFF,)
    assert noise(OFF, -1.0, 7.0) == off


def test_noise_that_is_none_by_another_name_aims_at_nothing_either():
    published = WeightedSumsNoise("published", 1.0, 1e-6)
    assert (published.epsilon, published.delta, published.aims) == (0.0, 0.0, False)
    assert published.named == ("published",)


def test_all_other_noise_is_named_by_what_it_aims_at():
    noise = CountsNoise("gaussian", 1.0, 1e-6, pseudo_count=3)
    assert noise.aims
    assert noise.named == ("gaussian", 1.0, 1e-6)
    assert WeightedSumsNoise("gaussian", 1.0, 1e-6).named == ("gaussian", 1.0, 1e-6)
    assert replace(noise, kind=OFF).pseudo_count == 3


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan"), 1.01e100])
def test_noise_aims_at_an_epsilon_that_means_something(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        CountsNoise("gaussian", epsilon, 1e-6)
    assert CountsNoise("gaussian", 1e100, 1e-6).aims


@pytest.mark.parametrize("delta", [-1e-9, 1.0, float("nan")])
def test_noise_aims_at_a_delta_below_one(delta):
    with pytest.raises(InputError, match="delta must lie in"):
        CountsNoise("gaussian", 1.0, delta)


def test_noise_without_an_epsilon_is_refused():
    with pytest.raises(InputError, match="epsilon must be a positive finite number"):
        CountsNoise("gaussian")


@dataclass(frozen=True)
class ShiftNoise(Noise):
    """Noise of one kind."""

    kind: Literal["shift", "missed", "off"]


@dataclass(frozen=True)
class Shifted(PrivateQuestion):
    """A question whose promise is as another package would write it."""

    kind: ClassVar[str] = "shifted"
    noise: ShiftNoise
    most: int = 5

    def fields(self) -> dict[str, Field]:
        return {"value": Field((self.draws,))}

    def assumes(self) -> Declared:
        return Declared(most_rows=self.most)

    def _promised(self) -> Guarantee | NoGuarantee:
        if self.noise.kind == "missed":
            return NoGuarantee("too little noise", (1.0, 0.0))
        if self.most == 0:
            raise ZeroDivisionError("division by zero rows")
        return Guarantee(self.noise.epsilon, 0.0, Unit.LABEL, Adjacency.REPLACE, "shift", {"most": self.most})


@dataclass(frozen=True)
class ShiftedInRounds(Shifted):
    """The same in queries that are paid for together."""

    in_rounds: ClassVar[bool] = True

    def _paid(self) -> Guarantee | NoGuarantee:
        return replace(self._promised(), epsilon=self.noise.epsilon * self.release.queries)


SHIFTED = Shifted(ShiftNoise("shift", 1.0), release=ReleaseId("a"))


@pytest.mark.parametrize("draws", [0, -1, 1.0, True, 10**6 + 1])
def test_so_many_draws_are_asked_for_as_there_may_be(draws):
    with pytest.raises(InputError, match="draws must be a whole number from 1 to 1000000"):
        replace(SHIFTED, draws=draws)
    assert replace(SHIFTED, draws=10**6).fields()["value"].numbers == 10**6


def test_a_release_of_many_queries_needs_noise_that_is_made_for_them():
    with pytest.raises(InputError, match="'shifted' is a release by itself, got one of 3 queries"):
        replace(SHIFTED, release=ReleaseId("a", 3, 1))
    asked = ShiftedInRounds(SHIFTED.noise, release=ReleaseId("a", 3, 1))
    assert (asked.promise().epsilon, asked.payment().epsilon) == (1.0, 3.0)


def test_one_answer_is_paid_for_as_promised():
    assert SHIFTED.payment() == SHIFTED.promise()


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_a_promise_says_whose_bits_the_noise_takes(promise):
    seeded, system = (getattr(replace(SHIFTED, seeded=seeded), promise)() for seeded in (True, False))
    assert seeded.parameters == {"most": 5, "entropy": "seed"}
    assert system.parameters == {"most": 5, "entropy": "system"}
    assert (seeded.assumptions, system.assumptions) == ((SEEDED,), ())
    missed = replace(SHIFTED, noise=ShiftNoise("missed", 1.0))
    assert getattr(missed, promise)() == NoGuarantee("too little noise", (1.0, 0.0))


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_without_noise_nothing_is_promised_whatever_the_question_says(promise):
    assert getattr(replace(SHIFTED, noise=ShiftNoise(OFF)), promise)() == NoGuarantee("noise is off")


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_nothing_is_promised_to_a_side_that_declares_otherwise(promise):
    assert getattr(SHIFTED, promise)(Declared(most_rows=5)).epsilon == 1.0
    with pytest.raises(InputError, match="takes most_rows to be 5, this side declares 6"):
        getattr(SHIFTED, promise)(Declared(most_rows=6))


@pytest.mark.parametrize("promise", ["promise", "payment"])
def test_numbers_that_overflow_a_mechanism_are_refused_and_not_a_fault(promise):
    with pytest.raises(InputError, match=r"no mechanism works with the numbers of the question 'shifted' \(division"):
        getattr(replace(SHIFTED, most=0), promise)()


def test_by_itself_a_question_takes_nothing_for_granted():
    class Plain(Shifted):
        assumes = PrivateQuestion.assumes

    plain = Plain(SHIFTED.noise, release=SHIFTED.release)
    assert plain.assumes() == Declared()
    assert (plain.shared, plain.simulated_only(), plain.work()) == (False, None, 0)


@pytest.mark.parametrize(("queries", "query"), [(2, 2), (2, -1), (0, 0), (2, 1.0), (True, 0)])
def test_a_query_beyond_those_agreed_on_is_refused(queries, query):
    with pytest.raises(InputError, match=r"refused|whole number"):
        ReleaseId("an exchange", queries, query)
