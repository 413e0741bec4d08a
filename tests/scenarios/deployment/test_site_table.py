"""A site's rows by reference, and watched: what a process of its own reads, and when they are read again."""

import os
import threading
from dataclasses import replace

import pytest
from support.postgresql import postgresql
from support.site_folders import site_folder

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement
from parties.party_data.cohort import Cohort
from parties.site.settings import Settings
from parties.site.worker import _away
from scenarios.deployment import table_check as site_table
from scenarios.deployment.table_check import WatchedTable


@pytest.fixture
def watched(tmp_path):
    settings = Settings.load(site_folder(tmp_path))
    return WatchedTable(settings.data, Agreement.load(settings.plan), 0)


def test_a_process_of_its_own_reads_what_the_service_has_seen(watched):
    holdings, told = watched.read()
    found = Cohort(watched.reference, 0, 1, None).holdings(0)
    assert told == ["no row has the class 'maybe'"]
    assert found.rows.tolist() == holdings.rows.tolist()
    assert found.labels.tolist() == holdings.labels.tolist()
    assert Cohort(watched.reference, 0, 1, None).provider.evaluation() is None


def test_a_process_of_its_own_refuses_a_table_that_is_not_as_agreed(watched):
    provider = Cohort(watched.reference, 0, 1, None).provider
    path = watched.where.file
    path.write_text(path.read_text().replace(",r,", ",s,"))
    with pytest.raises(InputError, match="has no column 'r'"):
        provider.holdings(0)


def test_a_file_is_another_one_once_it_has_changed(watched):
    before, path = watched.version(), watched.where.file
    assert watched.version() == before
    path.write_text(path.read_text() + "1,2,3,perhaps\n")
    assert watched.version() != before
    _, told = watched.read()
    assert told == ["1 of 41 rows have no class in 'ill', and count as 'no'", "no row has the class 'maybe'"]
    os.remove(path)
    assert watched.version() is None
    holdings, told = watched.read()
    assert (holdings, len(told)) == (None, 1)
    assert "there is no such file: rows.csv" in told[0]


def test_a_server_that_goes_away_in_the_middle_of_reading_is_away_and_a_cell_that_fails_is_not(watched):
    def asked(cells):
        query = f"select {cells} as p, 1.5 as q, 2.5 as r, 'no' as ill from generate_series(1, 100) as n"
        where = watched.where.model_copy(update={"file": None, "query": query, "url": server.url()})
        return Cohort(replace(watched, where=where).reference, 0, 1, None).provider

    with postgresql() as server:
        assert _away(asked("n"), 0) == _away(asked("n / (n - 50)"), 0) == ""
        going = threading.Timer(1.0, server.stop)
        going.start()
        told = _away(asked("n + length(pg_sleep(0.1)::text)"), 0)  # of ten seconds
        going.join()
        server.start()
    assert told.startswith("data.query: the data base says: ")


def test_a_query_is_made_again_after_a_while(watched, monkeypatch):
    where = watched.where.model_copy(update={"file": None, "query": "select 1", "url": "sqlite:///none"})
    asked, now = replace(watched, where=where), [1000.0]
    monkeypatch.setattr(site_table.time, "monotonic", lambda: now[0])
    before = asked.version()
    now[0] += 1
    assert asked.version() == before
    now[0] += 700
    assert asked.version() != before
