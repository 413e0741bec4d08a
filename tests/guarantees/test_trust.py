"""Whom parties trust: said once for a scenario, or by a protocol for itself."""

from pathlib import Path

import pytest

from federation.contract.errors import InputError
from federation.secure_aggregation.plan import SAID
from scenarios.runs.runner import run
from scenarios.settings.guarantees import promises
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

BASE = {"data": {"source": "breast_cancer"}, "parties": {"count": 20}, "privacy": {"epsilon": 1, "delta": 1e-6}}


def trusts(entries: list, **top) -> list:
    scenario = resolve({**BASE, "baselines": False, "protocols": entries, **top})
    return [protocol.options.get("trust") for protocol in scenario.protocols]


def test_a_scenario_says_it_for_those_that_do_not_and_variants_are_told_apart() -> None:
    entries = [{"kind": "mean_operator"}, {"kind": "mean_operator", "trust": "none"}, {"kind": "pooled"}]
    assert trusts(entries) == ["aggregator", "none", None]
    assert trusts(entries, trust="secure") == ["secure", "none", None]
    scenario = resolve({**BASE, "protocols": [{"kind": "mean_operator", "trust": ["aggregator", "secure"]}]})
    found = {one.name: one.default for one in variants(scenario) if one.kind == "mean_operator"}
    assert found == {"mean_operator": True, "mean_operator-secure": False}


def test_a_protocol_that_cannot_work_under_it_and_its_former_name_are_refused() -> None:
    with pytest.raises(InputError, match=r"protocols\.0.*trust.*none.*trust.*secure"):
        trusts([{"kind": "soft_vote"}], trust="none")
    with pytest.raises(InputError):
        trusts([{"kind": "mean_operator"}], trust="nobody")
    with pytest.raises(InputError, match=r"protocols\.0\.summation.*allowed.*kind"):
        trusts([{"kind": "mean_operator", "summation": "secure"}])


@pytest.mark.slow
def test_who_adds_up_is_in_the_ledger_and_changes_no_result(tmp_path: Path) -> None:
    protocols = [{"kind": "mean_operator", "protect": "row", "trust": "secure"}]
    document = {**BASE, "baselines": False, "protocols": protocols, "trials": {"splits": 1, "noise": 2}}
    results, told = set(), {"one": "", "one_semi_honest": f" by {SAID['one_semi_honest']}", "two": f" by {SAID['two']}"}
    for servers, by in told.items():
        scenario = {**document, "name": "trial", "servers": servers}
        run(scenario, out=tmp_path / servers)
        results.add((tmp_path / servers / "results.csv").read_bytes())
        ledger = (tmp_path / servers / "ledger.json").read_text()
        assert f"by a masked sum with {SAID[servers]}, all messages real" in ledger
        assert f"summation{by}" in ledger
        [promise] = promises(resolve(scenario))
        assert any("helper server" in role["who"] for role in promise["roles"]) is (servers == "two")
    assert len(results) == 1
