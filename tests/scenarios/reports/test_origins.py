"""Where the data of a run come from, as the report tells it."""

import pytest

from scenarios.reports.origins import origins
from scenarios.reports.report import write_report


def test_every_data_set_of_a_sweep_has_a_line():
    found = origins("data: {source: [har, my.csv, digits]}\nparties: {count: 1}\n")
    assert [line.partition(":")[0] for line in found] == ["har", "digits"]
    assert "https://archive.ics.uci.edu/dataset/240" in found[0]
    assert found[0].endswith("forbids commercial use")


@pytest.mark.parametrize(
    "text", ["data: {source: my.csv}", "data: 7", "name: a", "- a", "a: [", "data: {source: {a: 1}}"]
)
def test_of_anything_else_nothing_is_known(text):
    assert origins(text) == []


def test_the_report_tells_origin_and_licence(make_run, tmp_path):
    run = make_run()
    (run / "scenario.yaml").write_text("data: {source: breast_cancer}\n")
    page = write_report([run], tmp_path / "page.html").read_text("utf-8")
    assert "Breast Cancer Wisconsin (Diagnostic)" in page
    assert "https://archive.ics.uci.edu/dataset/17); licence: CC BY 4.0." in page
