"""Plans as the collector of a secure sum reads them."""

from types import SimpleNamespace

from federation.contract.trust import TrustTerms


def plan(parties, quorum=0.9, colluding=0.1, servers="one", summation="", bags=1, largest_bag=50):
    return SimpleNamespace(
        run=SimpleNamespace(summation=summation),
        public=SimpleNamespace(bags=bags, largest_bag=largest_bag),
        terms=TrustTerms(parties, quorum, colluding, servers),
    )
