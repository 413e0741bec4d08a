import math
import os

import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from scenarios.scores.results import COLUMNS, missed, protection, read_results, write_results

ROW = dict(zip(COLUMNS, ["s", "soft_vote", "soft_vote", 1, 0.1, 1e-6, "party", 0, 2, "accuracy", 1 / 3], strict=True))

WHOLE = (",".join(COLUMNS) + "\ns,soft_vote,v,1,0.5,0,party,0,1,accuracy,0.75").encode()


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


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", b"\xff\xfe", b"epsilon,value\nx,1\n", WHOLE + b",extra\n", WHOLE[:-6]]
)
def test_damaged_tables_are_input_errors(tmp_path, content):
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"r\.csv is not a results table: .*; name a directory that `federation run`"):
        read_results(tmp_path / "r.csv")


def test_absent_tables_and_pipes_are_input_errors(tmp_path):
    (tmp_path / "r.csv").write_bytes(WHOLE)
    assert read_results(tmp_path / "r.csv")[0]["value"] == 0.75
    with pytest.raises(InputError, match=r"there is no .*none\.csv to read; name a directory"):
        read_results(tmp_path / "none.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is a pipe or a device"):
        read_results(tmp_path / "pipe.csv")


@pytest.mark.parametrize(
    ("guarantee", "columns"),
    [
        (Guarantee(0.5, 1e-6, Unit.LABEL, Adjacency.REPLACE, "lattice"), (0.5, 1e-6, "label")),
        (NoGuarantee("noise is off"), (math.inf, 0.0, "none")),
        (NoGuarantee("it is not what it says", (0.05, 0.1)), (0.05, 0.1, "none")),
    ],
)
def test_columns_say_what_is_promised_or_claimed(guarantee, columns):
    assert protection(guarantee.to_dict()) == dict(zip(("epsilon", "delta", "unit"), columns, strict=True))


@pytest.mark.parametrize(
    ("epsilon", "aim", "said"),
    [(4.6, 1.0, {"aimed_epsilon": 1.0}), (1.0, 1.0, {}), (math.inf, 1.0, {}), (4.6, math.inf, {})],
)
def test_what_was_aimed_at_is_said_where_something_else_is_kept(epsilon, aim, said):
    assert missed(epsilon, aim) == said
