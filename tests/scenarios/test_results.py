import pytest

from federation.errors import InputError
from scenarios.results import COLUMNS, read_results, write_results

ROW = dict(zip(COLUMNS, ["s", "soft_vote", "soft_vote", 1, 0.1, 1e-6, "party", 0, 2, "accuracy", 1 / 3], strict=True))


def test_what_is_written_is_read_back_exactly(tmp_path):
    rows = [{**ROW, "parties.count": "10"}, {**ROW, "epsilon": float("inf"), "parties.count": ""}]
    write_results(tmp_path / "r.csv", rows, ["parties.count"])
    assert read_results(tmp_path / "r.csv") == rows
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == ",".join([*COLUMNS, "parties.count"])


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    write_results(tmp_path / "r.csv", [ROW], [])
    before = (tmp_path / "r.csv").read_bytes()

    def rows():
        yield ROW
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_results(tmp_path / "r.csv", rows(), [])
    assert (tmp_path / "r.csv").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe", b"epsilon,value\nx,1\n"])
def test_damaged_tables_are_input_errors(tmp_path, content):
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(InputError):
        read_results(tmp_path / "r.csv")
