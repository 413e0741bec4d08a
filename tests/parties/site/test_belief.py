"""What a site believes of those who add up: nothing more than it says itself."""

import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Second
from federation.signed_messages.keys import new_site_key
from parties.site.settings import Belief


@pytest.fixture(scope="module")
def plan():
    found = agreement_for(Ed25519PrivateKey.generate(), [new_site_key().public_key()], QUESTIONS["counts"])
    return lambda servers: found.model_copy(update={"servers": servers})


def test_a_second_server_is_known_by_its_key(plan):
    two = plan("two").model_copy(update={"second": Second(name="ombud", masks="ab" * 32)})
    with pytest.raises(InputError, match=f"'ombud' has the key {'ab' * 32}, which is not in policy.second-servers"):
        Belief(servers=("two",), seconds=("cd" * 32,)).require(two)
    Belief(servers=("two",), seconds=("cd" * 32, "ab" * 32)).require(two)


def test_a_server_that_may_do_what_it_likes_takes_no_belief(plan):
    assert [*Belief().objections(plan("one"))] == []


@pytest.mark.parametrize(
    ("believed", "servers", "said"),
    [
        (("one",), "one_semi_honest", "a coordinator that cheats in the sum could read this site's part; policy.serv"),
        (("one_semi_honest",), "one", 'policy.servers allows "one_semi_honest": write "one" there, too'),
    ],
)
def test_what_is_not_believed_is_a_sentence(plan, believed, servers, said):
    with pytest.raises(InputError, match=re.escape(said)):
        Belief(servers=believed).require(plan(servers))
    Belief(servers=(*believed, servers)).require(plan(servers))
