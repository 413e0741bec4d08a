"""Short names of variants: unique, and shorter by what all have or what follows from the rest."""

from hypothesis import given
from hypothesis import strategies as st

from scenarios.reports.summary import is_published, labels, options_of


def test_what_all_of_a_protocol_have_and_what_follows_from_the_rest_is_left_out():
    found = labels(
        {
            "ours": "soft_vote",
            "soft_vote": "soft_vote",
            "soft_vote-gaussian": "soft_vote",
            "soft_vote-output-published-regularisation=1e-06": "soft_vote",
            "soft_vote-output-published-regularisation=0.1": "soft_vote",
            "soft_vote-output-regularisation=0.1": "soft_vote",
            "mean_operator-row": "mean_operator",
            "mean_operator-pure-row": "mean_operator",
            "pooled": "pooled",
        }
    )
    assert list(found.values()) == [
        "ours", "soft_vote", "soft_vote gaussian", "soft_vote published regularisation=1e-06",
        "soft_vote published regularisation=0.1", "soft_vote regularisation=0.1",
        "mean_operator", "mean_operator pure", "pooled",
    ]  # fmt: skip


def test_the_protocol_is_left_out_where_there_is_no_other():
    names = ["x", "x-a", "x-b=2-c", "constant"]
    assert list(labels({name: name.split("-")[0] for name in names}).values()) == ["x", "a", "c", "constant"]
    assert labels({"x-a": "x"}) == {"x-a": "x"}


def test_the_protocol_without_its_noise_is_called_so():
    assert labels({"x": "x", "noise_free": "noise_free"}) == {"x": "x", "noise_free": "without noise"}


def test_names_that_would_be_alike_stay_whole():
    assert labels({"x": "x", "x-a": "x", "a": "x"}) == {"x": "x", "x-a": "x-a", "a": "a"}


def test_published_is_said_in_every_spelling_and_place():
    assert is_published("x-published")
    assert is_published("x-a-published_laplace-b=1")
    assert is_published("published-by-hamm")
    assert not is_published("x-unpublished")
    assert options_of("x-b=1e-06-c") == ["b=1e-06", "c"]


OPTIONS = st.lists(st.sampled_from(["a", "b", "published", "c=1", "d=1e-06"]), unique=True)


@given(st.lists(st.tuples(st.sampled_from(["x", "y"]), OPTIONS), min_size=1), st.sets(st.sampled_from("abxyc")))
def test_no_two_are_alike_and_none_is_longer(variants, chosen):
    protocols = {"-".join([kind, *sorted(options)]): kind for kind, options in variants}
    protocols |= dict.fromkeys(chosen - set(protocols), "x")
    found = labels(protocols)
    assert found.keys() == protocols.keys()
    assert len(set(found.values())) == len(found)
    assert all(len(label) <= len(name) for name, label in found.items())
    assert all(is_published(name) == ("published" in label) for name, label in found.items())
