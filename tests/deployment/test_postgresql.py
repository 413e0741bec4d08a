"""The page on three sites, of which one has its rows in PostgreSQL, whose server is away for a while."""

import csv

import pytest
from support.postgresql import postgresql
from support.trials import ROOT, following, wait_until

from scenarios.scores.prediction import choose

pytestmark = [pytest.mark.slow, pytest.mark.servers]

PASSWORD = "p%40ss word"
FILE = 'file = "patients.csv"'


@pytest.fixture
def trial(tmp_path):
    """The page, followed as far as the collection; and the server of the north."""
    slow = {"seconds = 12/": "seconds = 20/"}
    with postgresql() as server, following(tmp_path, until="mkdir keys", **slow) as found:
        filled(server, tmp_path / "north/patients.csv")
        site = tmp_path / "north/site.toml"
        url = server.url("reader", PASSWORD.replace(" ", "%20"))
        query = "SELECT *, CASE outcome WHEN true THEN 'malignant' ELSE 'benign' END AS found FROM known"
        text = site.read_text().replace(FILE, f'url = "{url}"\nquery = "{query}"')
        site.write_text(text.replace('# outcome = {from = "NAME', 'outcome = {from = "found"} # {from = "NAME'))
        page = (ROOT / "docs/deployment/three-sites.md").read_text()
        found.follow(page, since="mkdir keys", until="federation collect")
        yield found, server


def filled(server, path):
    """A table of numbers of several types, and a view of it that somebody else may read."""
    names, *rows = csv.reader(path.open())
    kinds = ["real", "numeric(12, 6)", "double precision"]
    columns = [f"{name} {kinds[place % 3]}" for place, name in enumerate(names[:-1])]
    server.do(f"create table patients ({', '.join(columns)}, outcome boolean)")
    for row in rows:
        server.do(f"insert into patients values ({', '.join(row[:-1])}, {row[-1] == 'malignant'})")
    server.do(
        "create view known as select * from patients",
        "create role reader login password 'p@ss word'",
        "grant select on known to reader",
    )


def test_a_site_answers_from_postgresql_and_pays_nothing_while_its_server_is_away(trial):
    trial, server = trial
    checked = trial.do("federation party check north/site.toml")
    rows = len((trial.folder / "north/patients.csv").read_text().splitlines()) - 1
    assert f"{rows} rows, outcome malignant" in checked
    server.stop()
    collecting = trial.collecting("--wait", "10m")
    try:
        wait_until(lambda: "the data base says" in trial.log("north"))
        assert "charged" not in trial.events("north")
        server.start()
        _, told = collecting.communicate(timeout=400)
    finally:
        collecting.kill()
    assert collecting.returncode == 0, told
    told = [event for event in trial.events("north") if event in ("charged", "begun", "answered")]
    assert told == ["charged", "begun", "answered"]
    assert choose(trial.folder / "trial/releases/001/mean_operator-row.npz").used.guarantee["epsilon"] <= 3
    for path in trial.folder.rglob("*"):
        if path.is_file() and path.name != "site.toml":
            content = path.read_bytes()
            assert not any(secret in content for secret in (b"p%40ss", b"p@ss"))
