"""A data set by name: what reads it, with what, and how a file of another content is refused."""

from pathlib import Path

import numpy as np
import pytest

from federation.contract.errors import InputError
from scenarios.data.tables import DataSet, Table


def table(name):
    return Table(name, ("x",), ("a", "b"), np.array([0, 1]), (np.zeros((2, 1)),))


def test_a_bundled_one_takes_no_file_and_is_the_same_for_every_instance():
    known = DataSet("own", "two rows", lambda: table("bundled"))
    assert known.read(None).name == known.read(None, instance=3).name == "bundled"


def test_a_generated_one_is_made_anew_for_every_instance():
    known = DataSet("own", "two rows", lambda instance: table(f"number {instance}"), generated=True)
    assert [known.read(None).name, known.read(None, 2).name] == ["number 0", "number 2"]


def test_a_file_is_read_by_a_reader_that_knows_the_data_set():
    def reader(data_set, path):
        return table(f"{data_set.name} from {path.name}")

    known = DataSet("own", "two rows", reader, file="own.npz", holds="two rows")
    assert known.read(Path("folder") / "own.npz").name == "own from own.npz"


def test_a_reader_refuses_another_content_in_the_words_of_the_data_set():
    def reader(data_set, path):
        raise data_set.refusal(path, "3 columns")

    known = DataSet("own", "two rows", reader, file="own.npz", holds="an array X of 2 columns")
    with pytest.raises(InputError, match=r"^other\.npz must hold an array X of 2 columns; got 3 columns$"):
        known.read(Path("other.npz"))
    assert str(known.refusal(Path("o.npz"))) == "o.npz must hold an array X of 2 columns"
