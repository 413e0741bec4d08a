"""What does not go together with rows that arrive over time is refused by file and line."""

import pytest

from federation.contract.errors import InputError
from scenarios.settings.schema import resolve

STREAM = """\
data:
  source: mine.csv
  label: class
  time: day
  auxiliary: 0.2
  test: next
parties:
  count: 10
privacy:
  epsilon: 1
trials:
  periods: 4
  window: 2
"""


@pytest.fixture
def written(tmp_path):
    def write(*changes):
        text = STREAM
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "stream.yaml"
        path.write_text(text)
        return path

    return write


def test_a_stream_is_read_and_written(written):
    scenario = resolve(written(("  test: next\n", "")))
    assert (scenario.data.time, scenario.data.test, scenario.trials.window) == ("day", "next", 2)
    assert resolve(scenario.to_plain()) == scenario
    assert resolve(written(("window: 2", "window: all"))).trials.window == "all"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("next", "0.2", 6, "data.test: must be next with data.time, as a release is tested on"),
        ("next", "official", 6, "data.test: must be next with data.time"),
        ("next", "0", 6, "data.test: must be next with data.time"),
        ("0.2", "official", 5, "data.auxiliary: must be a count or a fraction of each period's rows, or a file"),
        ("0.2", "{by: x, from: 0.1, to: 0.9}", 5, "data.auxiliary: must be a count or a fraction of each period's"),
        (
            "  count: 10",
            "  count: 10\n  partition: {by: ward}",
            8,
            "parties.count: with {by: COLUMN} and data.time all",
        ),
        ("  periods: 4\n", "", 11, "trials.periods: missing; data.time needs periods"),
        ("  time: day\n", "", 5, "data.test: next is the period that follows, and needs data.time"),
        ("  time: day\n", "", 11, "trials.periods: needs data.time"),
        ("  time: day\n", "", 12, "trials.window: is for rows that arrive over time"),
        ("time: day", "time: class", 4, "data.time: names the column of the labels"),
        (
            "time: day",
            "time: day\n  drop: [day]",
            5,
            "data.drop: names 'day', which is the column of the labels, persons",
        ),
        ("periods: 4", "periods: 1", 12, "trials.periods: must be a number of periods of equal length from 2 to 1000"),
        ("periods: 4", "periods: 2000", 12, "trials.periods: must be a number of periods"),
        ("periods: 4", "periods: {every: fortnight}", 12, "trials.periods: must be a number of periods"),
        ("periods: 4", "periods: {every: 0}", 12, "trials.periods: must be a number of periods"),
        ("periods: 4", "periods: [2023-02, 2023-01]", 12, "trials.periods: must be a number of periods"),
        ("periods: 4", "periods: [2023-02, soon]", 12, "trials.periods: must be a number of periods"),
        ("periods: 4", "periods: [1, 2023-01-05]", 12, "trials.periods: must be a number of periods"),
        ("window: 2", "window: 0", 13, "trials.window: must be all or a whole number from 1 to 1000"),
        ("window: 2", "window: some", 13, "trials.window: must be all or a whole number from 1 to 1000"),
    ],
)
def test_what_is_unsuited_is_refused_by_its_line(written, old, new, line, said):
    with pytest.raises(InputError) as error:
        resolve(written((old, new)))
    assert f"stream.yaml:{line}: {said}" in str(error.value)


@pytest.mark.parametrize("periods", ["{every: week}", "{every: 7}", "[2023-01, 2023-W09, 2023-04-01]", "[0, 3.5, 9]"])
def test_periods_are_given_by_number_span_or_starts(written, periods):
    scenario = resolve(written(("periods: 4", f"periods: {periods}")))
    assert resolve(scenario.to_plain()) == scenario
