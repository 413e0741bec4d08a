"""What the page on periods says happens: new rows are asked about by the same plan, until the budget is spent."""

import json

import pytest
from support.trials import following

from parties.site.accounts import Journal
from scenarios.deployment.collecting import totals
from scenarios.deployment.folder import Folder

pytestmark = [pytest.mark.slow, pytest.mark.servers]


@pytest.fixture
def trial(tmp_path):
    with following(tmp_path, page="periods", **{"seconds = 12/": "seconds = 20/"}) as found:  # the machine may be busy
        yield found


def spent(trial, number):
    return json.loads((trial.folder / f"year/releases/{number}/world.json").read_text())["ledger"]["releases"][0]


def test_each_quarter_has_its_release_of_its_own_rows_until_all_that_is_spent_together_is_the_budget(trial):
    for site in ("north", "south"):
        lines = Journal(trial.folder / site / "state" / "journal.jsonl", reading=True).lines
        told = [line["event"] for line in lines if line["event"] in ("table", "charged", "answered")]
        assert told == ["table", "charged", "answered"] * 2
        assert len({line["content"] for line in lines if line["event"] == "table"}) == 2
    for number in ("001", "002"):
        assert spent(trial, number)["guarantee"]["epsilon"] == pytest.approx(3, abs=0.01)
    [total] = totals(Folder.opened(trial.folder / "year"))  # of two Gaussian releases, less than twice one
    assert (total["unit"], round(total["epsilon"], 2), total["delta"]) == ("row", 4.42, 1e-6)
    with pytest.raises(RuntimeError, match=r"3.*epsilon"):
        trial.do("federation collect year --new-exchange")
