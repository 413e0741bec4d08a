"""The one reader of npz files: it reads no pickles, and allocates no memory that the file could not fill."""

import struct
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import is_file

# What zipfile and numpy raise for bytes that nobody wrote on purpose. Neither says so; this is what they gave for
# truncated, changed and crafted files: RuntimeError for headers nested too deeply, SystemError for no characters.
DAMAGED = (
    OSError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, SyntaxError,
    TokenError, BadZipFile, zlib.error, NotImplementedError, RuntimeError, SystemError,
)  # fmt: skip
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # 3.0 is for named fields only
_MOST_EXPANDED = {ZIP_STORED: 1, ZIP_DEFLATED: 1032}  # bytes out of one byte, at the very most, by the method
_ENCRYPTED = 0x1  # a flag of a member
_MEMBER_HEADER = 30  # bytes before a member's name
_MAPPED = 1 << 28  # bytes from which an array is rather mapped than read
_SAVE_AGAIN = "save it again with numpy.savez"


def header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """What the header of an npy file declares: the shape, whether columns come first, and the type; no more is read.

    Raises one of `DAMAGED` for what is no header.
    """
    try:
        return _HEADERS[npy.read_magic(member)](member)
    except MemoryError as error:  # the parser's word for brackets in brackets, thousands deep
        raise ValueError("the header is no description of an array") from error


def fills(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> bool:
    """Whether an array of this shape and type takes exactly so many bytes.

    Examples:
        >>> fills((2, 3), np.dtype("f4"), 24), fills((2**40,), np.dtype("f8"), 24)
        (True, False)
    """
    return min(shape, default=0) >= 0 and dtype.itemsize > 0 and prod(shape) * dtype.itemsize == size


def _require_characters(array: NDArray[Any]) -> None:
    """Raises `ValueError` for texts of which a number stands for no character: Python takes some that end it later."""
    if array.dtype.kind == "U":
        numbers = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if numbers.max(initial=0) > sys.maxunicode:
            raise ValueError("no character")
        "".join(array.ravel().tolist()).encode()  # raises for halves of characters


class NpzFile:
    """The arrays of one npz file by name, each read when it is asked for.

    Nothing is unpickled. What an array declares is held against the size of its member in the zip directory, and that
    against the size of the file, before memory is taken: a deflated member has at most 1032 times as many bytes as the
    file has for it, a stored one equally many.

    Raises `InputError`, which names the file and ends with the `remedy`, for anything but a regular file that numpy
    could have saved: a damaged one, members that are encrypted, compressed by another method or of one name. `[]` does
    so for an array that is missing, damaged, of Python objects or of named fields.

    Examples:
        >>> import numpy as np
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "toy.npz"), X=np.ones((3, 2)), y=np.array([0, 1, 0]))
        ...     file = NpzFile(Path(folder, "toy.npz"))
        >>> list(file), "z" in file, file["X"].shape
        (['X', 'y'], False, (3, 2))
    """

    def __init__(self, path: Path, remedy: str = _SAVE_AGAIN) -> None:
        self.path, self.remedy = path, remedy
        try:
            self._size = path.stat().st_size if is_file(path) else 0
            with path.open("rb") as file:
                if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
                    raise InputError(f"{path} holds one array, not an npz archive of named arrays; {_SAVE_AGAIN}")
            self._zip = ZipFile(path)
        except InputError:
            raise
        except DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise InputError(f"{path} cannot be read: {error.strerror}; check the path") from error
            raise InputError(f"{path} is damaged or not an npz file; {remedy}") from error
        members = [(info.filename.removesuffix(".npy"), info) for info in self._zip.infolist()]
        self._members = dict(members)
        for name, times in Counter(name for name, _ in members).items():
            if times > 1:
                raise self._problem(name, f"is there {times} times")

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    @property
    def listed(self) -> str:
        """The names of all arrays on one line. Names in a damaged file may contain any character."""
        return ", ".join(map(_on_one_line, self)) or "none"

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self:
            raise InputError(f"{self.path} has no array '{name}'; it has {self.listed}" + nearest_name(name, self))
        found = self._members[name]
        try:
            self._require_plausible(name, found)
            with self._zip.open(found) as member, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on headers as Python 2 wrote them, which are read as well
                self._require_plain(name, member, found.file_size)
                member.seek(0)
                array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
            _require_characters(array)
            return array
        except InputError:
            raise
        except DAMAGED as error:
            raise self._damaged(name) from error
        except MemoryError as error:
            size = f"{found.file_size / 2**30:.3g} GiB"
            raise InputError(f"{self.path}: there is no memory for {_array(name)} of {size}; use fewer rows") from error

    def mapped(self, name: str) -> NDArray[Any]:
        """The array, read when its numbers are used where it is large, was stored row by row and is not compressed.

        So a table larger than memory can be used. Of such an array only the form is checked.
        """
        found = self._members.get(name)
        if found is None or found.compress_type != ZIP_STORED or found.file_size < _MAPPED:
            return self[name]
        try:
            self._require_plausible(name, found)
            with self._zip.open(found) as member:
                self._require_plain(name, member, found.file_size)
                member.seek(0)
                shape, by_column, dtype = _HEADERS[npy.read_magic(member)](member)
                first = member.tell()
            with self.path.open("rb") as file:  # a member's own header is as long as its name and what follows say
                file.seek(found.header_offset)
                name_length, extra_length = struct.unpack("<26x2H", file.read(_MEMBER_HEADER))
            first += found.header_offset + _MEMBER_HEADER + name_length + extra_length
            whole = first + prod(shape) * dtype.itemsize <= self._size
            if by_column or dtype.kind not in "iufb" or not whole:
                return self[name]
            return np.memmap(self.path, dtype, "r", first, shape)
        except DAMAGED as error:
            raise self._damaged(name) from error

    def _require_plausible(self, name: str, member: ZipInfo) -> None:
        """Refuse a member that numpy writes none of, or that is larger than its bytes in the file can be."""
        if member.flag_bits & _ENCRYPTED:
            raise self._problem(name, "is encrypted")
        if member.compress_type not in _MOST_EXPANDED:
            raise self._problem(name, "is compressed by a method that numpy does not use")
        most = min(member.compress_size, self._size) * _MOST_EXPANDED[member.compress_type]
        if member.file_size > most:
            raise self._problem(name, f"claims {member.file_size} bytes, and its part of the file holds {most} at most")

    def _require_plain(self, name: str, member: IO[bytes], size: int) -> None:
        """Refuse an array of anything but numbers or texts, and a header that claims more or less of them."""
        shape, _, dtype = header(member)
        if dtype.hasobject:  # numpy's advice is to load them as pickles, which run code
            raise InputError(
                f"{self.path}: {_array(name)} holds Python objects; save it as numbers or as text, "
                f"{_on_one_line(name)}.astype(str)"
            )
        if dtype.kind == "V":
            raise InputError(f"{self.path}: {_array(name)} holds {dtype!s:.80}; save its fields as arrays of their own")
        there = size - member.tell()
        if not fills(shape, dtype, there):
            raise self._problem(name, f"claims the shape {shape!s:.80} of {dtype}, and has {there} bytes")

    def _problem(self, name: str, problem: str) -> InputError:
        return InputError(f"{self.path}: {_array(name)} {problem}; {self.remedy}")

    def _damaged(self, name: str) -> InputError:
        return InputError(f"{self.path} is damaged: {_array(name)} cannot be read; {self.remedy}")


def _array(name: str) -> str:
    return f"array '{_on_one_line(name)}'"


def _on_one_line(name: str) -> str:
    """Give the name of an array as it is, or with escapes where characters of it cannot be printed."""
    return name if name.isprintable() else ascii(name)[1:-1]
