"""What secure sums rest on is said to whoever decides, and nothing is said that the servers do not keep."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS

from scenarios.deployment.site_texts import compared, for_site, promised, unseen

KEY = "ab" * 32
COUNTED = {"kind": "counts", "times": 1, "same": {}, "length": 1, "reply": 1, "masked": True}


@pytest.fixture(params=["one", "one_semi_honest", "two"])
def plan(request):
    sites = [{"name": name} for name in ("north", "south", "west")]
    second = {"second": {"name": "ombud", "masks": KEY}} if request.param == "two" else {}
    known = {"sites": sites, "asked": [COUNTED], "servers": request.param, "quorum": 1.0, "colluding": 0.1}
    return agreement_for(Ed25519PrivateKey.generate(), [], QUESTIONS["counts"], **known, **second)


def test_whom_one_must_believe_is_said_to_all(plan):
    told = [promised(plan), unseen(plan), *for_site(plan, 0.2)]
    assert "1 of 3" in told[0]
    assert "of 3 of 3 sites at least" in told[2]
    assert "policy.colluding: 0.2 may" in told[2]
    for text, servers in {
        "follow the protocol": "one_semi_honest",
        "you and 'ombud' do not put together": "two",
        "sites trust nobody": "one",
    }.items():
        assert (text in told[0]) is (plan.servers == servers)
    assert ("FOLLOWS THE PROTOCOL" in told[2]) is (plan.servers == "one_semi_honest")
    assert ("DO NOT COLLUDE" in told[2]) is (KEY in told[2]) is (plan.servers == "two")
    assert ("nobody sees it" in told[1]) is (plan.servers == "one")
    assert ("OTHER SITES" in " ".join(told)) is compared(plan) is (plan.servers != "one_semi_honest")
