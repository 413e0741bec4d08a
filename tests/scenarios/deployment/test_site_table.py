"""A site's rows by reference, and watched: what a process of its own reads, and when they are read again."""

import os

import pytest
from support.site_folders import site_folder

from federation.contract.errors import InputError
from federation.letters.agreement import Agreement
from parties.holdings.cohort import Cohort
from parties.site.settings import Settings
from scenarios.deployment import site_table
from scenarios.deployment.site_table import WatchedTable


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


def test_a_file_is_read_again_once_it_is_another(watched):
    assert watched.changed()
    watched.read()
    assert not watched.changed()
    path = watched.where.file
    path.write_text(path.read_text() + "1,2,3,perhaps\n")
    assert watched.changed()
    _, told = watched.read()
    assert told == ["1 of 41 rows have no class in 'ill', and count as 'no'", "no row has the class 'maybe'"]
    assert not watched.changed()
    os.remove(path)
    assert watched.changed()
    holdings, told = watched.read()
    assert (holdings, len(told)) == (None, 1)
    assert "there is no such file: rows.csv" in told[0]


def test_a_query_is_made_again_after_a_while(watched, monkeypatch):
    watched.where = watched.where.model_copy(update={"file": None, "query": "select 1", "url": "sqlite:///none"})
    now = [1000.0]
    monkeypatch.setattr(site_table.time, "monotonic", lambda: now[0])
    watched.read()
    assert not watched.changed()
    now[0] += 700
    assert watched.changed()
