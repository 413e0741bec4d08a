"""Files that numpy never wrote: each is refused in one sentence that names it, and none takes memory that it claims."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.damage import damaged, read_or_refused
from support.refusals import refused

from federation.contract import npz_files
from federation.contract.errors import InputError
from federation.contract.npz_files import NpzFile

X = np.arange(24.0).reshape(12, 2)
Y = np.array(list("abcabcabcabc"))


def npy(values: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, values, allow_pickle=True)
    return out.getvalue()


def headed(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """A member with any header, as numpy writes them."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def said(shape: str, dtype: str = "'<f8'", fortran: bool = False) -> str:
    return f"{{'descr': {dtype}, 'fortran_order': {fortran}, 'shape': {shape}}}"


@pytest.fixture
def zipped(tmp_path):
    def of(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
        path = tmp_path / "own.npz"
        with zipfile.ZipFile(path, "w", method) as file:
            for name, content in members:
                file.writestr(name, content)
        return path

    return of


def test_every_array_that_numpy_saves_is_read(tmp_path):
    arrays = {
        "rows": X, "columns": np.asfortranarray(X), "texts": Y, "one": np.array(3), "none": np.ones((0, 2)),
        "big": X.astype(">f4"), "bits": X > 3, "bytes": np.array([b"a"]), "unusual": np.array(["\U0001f600", ""]),
    }  # fmt: skip
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "own.npz", **arrays)
        file = NpzFile(tmp_path / "own.npz")
        assert list(file) == list(arrays)
        for name, values in arrays.items():
            np.testing.assert_array_equal(file[name], values)
            assert file[name].dtype == values.dtype


def test_a_header_that_python_2_wrote_is_read_without_a_warning_and_lack_of_memory_is_told(zipped, monkeypatch):
    file = NpzFile(zipped(("X.npy", headed(said("(2L, 1L)"), np.ones(2).tobytes()))))
    assert file["X"].tolist() == [[1.0], [1.0]]

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("numpy.lib.format.read_array", refuse)
    with pytest.raises(InputError, match=r"own\.npz.*'X'.*GiB"):
        file["X"]


@pytest.mark.parametrize("shape", ["(3000000000000,)", "(1000000, 1000000)", "(12, 3)", "(1,)", "(-24,)", "(-4, -6)"])
def test_a_shape_that_the_bytes_cannot_hold_is_refused_before_memory_is_taken(zipped, shape):
    file = NpzFile(zipped(("X.npy", headed(said(shape), X.tobytes()))))
    tracemalloc.start()
    with pytest.raises(InputError, match=r"own\.npz.*'X'.*float64.*192"):
        file["X"]
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_size_that_the_file_cannot_hold_is_refused_before_memory_is_taken(zipped, method):
    content = headed(said("(2684354560,)"), b"\0" * 800)
    path = zipped(("X.npy", content), method=method)
    claimed = len(content) - 800 + 8 * 2684354560
    changed = path.read_bytes()
    at = changed.index(b"PK\1\2")  # the directory's entry; a size of 4 GiB or more goes to its extra field
    extra = struct.pack("<HHQ", 1, 8, claimed)
    entry = bytearray(changed[at : at + 46])
    entry[24:28], entry[30:32] = b"\xff" * 4, struct.pack("<H", len(extra))
    end = changed.index(b"PK\5\6")
    tail = bytearray(changed[end:])
    tail[12:16] = struct.pack("<I", end - at + len(extra))
    path.write_bytes(changed[:at] + bytes(entry) + changed[at + 46 : end] + extra + bytes(tail))
    assert zipfile.ZipFile(path).getinfo("X.npy").file_size == claimed
    with pytest.raises(InputError, match=rf"'X'.*{claimed}"):
        NpzFile(path)["X"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(np.array([print, None])), r"holds Python objects; save it as numbers or as text, X\.astype\(str\)"),
        (npy(np.zeros(2, dtype=[("a", "f8"), ("b", "O")])), "holds Python objects"),
        (npy(np.zeros(2, dtype=[("a", "f8")])), r"holds \[\('a', '<f8'\)\]; save its fields as arrays of their own"),
        (headed(said("(1,)", "('<f8', (2,))"), bytes(16)), ".*; save its fields as arrays of their own"),
        (headed(said("(1000000000000,)", "'<U0'")), "claims the shape"),  # of no bytes at all
        (npy(X)[:-1], r"claims the shape \(12, 2\) of float64, and has 191 bytes; save it again"),
    ],
)
def test_arrays_of_anything_but_numbers_and_texts_are_refused(zipped, content, words):
    with pytest.raises(InputError, match=r"own\.npz: array 'X' " + words):
        NpzFile(zipped(("X.npy", content)))["X"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        headed("{'descr': '<f8', "),  # TokenError
        headed("(" * 9000),
        headed("-" * 9000 + "1"),  # RecursionError, or MemoryError of other releases of Python
        headed(said("(2,)") + " " * 70000, version=2),  # numpy's advice is to allow pickles
        headed(said("(2,)"), bytes(16), version=4),
        headed(said("(2,)", "'<q9'"), bytes(16)),
        headed(said("(2,)", "None"), bytes(16)),
        headed(said("2"), bytes(16)),
        headed(said("(1,)", "'<U1'"), (0x110000).to_bytes(4, "little")),  # SystemError of str
        headed(said("(1,)", "'<U1'"), (0xD800).to_bytes(4, "little")),
        # Python makes a text of it, and raises SystemError once that is to be lower.
        headed(said("(1,)", "'<U2'"), (0x23462800).to_bytes(4, "little") + b"a\0\0\0"),
        headed(said("(1,)", "'>U1'"), (0x23462800).to_bytes(4, "big")),
    ],
)
def test_a_member_that_is_no_array_is_damaged(zipped, content):
    with pytest.raises(InputError, match=r"own\.npz.*'X'") as refusal:
        NpzFile(zipped(("X.npy", content)))["X"]
    assert "pickle" not in str(refusal.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_methods_of_compression_that_numpy_does_not_use_and_encrypted_members_are_refused(zipped, method):
    path = zipped(("X.npy", npy(X)), method=method)
    if method == zipfile.ZIP_DEFLATED:
        content = bytearray(path.read_bytes())
        for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            content[content.index(mark) + flags] |= 1
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"own\.npz.*'X'"):
        NpzFile(path)["X"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["X.npy", "X"])
def test_two_members_of_one_name_and_what_is_no_file_are_refused(zipped, second):
    path = zipped(("X.npy", npy(X)), (second, npy(X + 1)))
    refused(r"own\.npz.*'X'.*2", NpzFile, path)
    path.write_bytes(b"PK")
    refused(r"own\.npz.*npz", NpzFile, path, "ask for another")


def test_names_that_cannot_be_printed_are_told_on_one_line(zipped):
    file = NpzFile(zipped(("a\nb\0.npy", npy(X)), ("c\x1b.npy", b"none")))
    assert file.listed.count("\n") == 0
    with pytest.raises(InputError, match=r"it has a\\nb") as caught:
        file["X"]
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"'c\\x1b'") as caught:
        file["c\x1b"]
    assert str(caught.value).isprintable()


@given(st.data(), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), st.booleans())
def test_damage_is_told_or_changes_nothing(tmp_path_factory, data, method, inside):
    """Of the file, where a checksum finds it, or of the array before it is put in the file."""
    path = tmp_path_factory.mktemp("npz") / "own.npz"
    content = data.draw(damaged(npy(X))) if inside else npy(X)
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("X.npy", content)
    if not inside:
        path.write_bytes(data.draw(damaged(path.read_bytes())))
    values = read_or_refused(lambda: NpzFile(path)["X"], path)
    if values is not None and inside:
        assert values.nbytes <= len(content)
    elif values is not None:
        np.testing.assert_array_equal(values, X)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_])
def test_a_large_stored_array_is_mapped(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(npz_files, "_MAPPED", 100)
    values = (np.arange(600).reshape(100, 6) % 7).astype(dtype)
    np.savez(tmp_path / "own.npz", y=np.arange(100), X=values)
    found = NpzFile(tmp_path / "own.npz").mapped("X")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, values)
    assert not found.flags.writeable


@pytest.mark.parametrize(
    ("save", "values"),
    [
        (np.savez_compressed, np.ones((100, 6))),
        (np.savez, np.asfortranarray(np.arange(600.0).reshape(100, 6))),
        (np.savez, np.array([["word"] * 6] * 100)),
        (np.savez, np.ones((2, 2))),
    ],
    ids=["compressed", "by column", "texts", "small"],
)
def test_other_arrays_are_read(tmp_path, monkeypatch, save, values):
    monkeypatch.setattr(npz_files, "_MAPPED", 300)
    save(tmp_path / "own.npz", X=values)
    found = NpzFile(tmp_path / "own.npz").mapped("X")
    assert not isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, values)


def test_a_mapped_array_that_is_not_there_or_cut_off_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_files, "_MAPPED", 100)
    path = tmp_path / "own.npz"
    np.savez(path, X=np.ones((100, 6)))
    refused("'Z'", NpzFile(path).mapped, "Z")
    found = NpzFile(path)
    path.write_bytes(path.read_bytes()[:2000])
    refused("'X'", found.mapped, "X")
