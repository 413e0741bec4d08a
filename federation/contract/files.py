"""Files that a user names: checks of their kind, reading with clear errors, lasting writes, and locks.

`is_file` checks a file before anything opens it: a pipe or a device may never end.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from federation.contract.errors import InputError

_CHARACTERS_SHOWN = 200  # of a path
_PAUSE = 0.1  # seconds between two tries of a lock that somebody holds


def is_file(path: Path) -> bool:
    """Whether there is a regular file, or a link to one; nothing is opened.

    Raises `InputError` for what is there and cannot be read from start to end (a folder, a pipe, a device), for a name
    that no file can have, a link that leads back to itself and a folder that may not be entered.

    Examples:
        >>> is_file(Path("there/is/none"))
        False
        >>> is_file(Path("/"))
        Traceback (most recent call last):
        federation.contract.errors.InputError: / is a folder; name a file in it
    """
    mode = _mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"{_shown(path)} is a folder; name a file in it")
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(
            f"{_shown(path)} is a pipe or a device, which may never end; save what it gives and name that file"
        )
    return mode is not None


def is_folder(path: Path) -> bool:
    """Whether there is a folder, or a link to one. Raises `InputError` for a name that nothing can have."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def _mode(path: Path) -> int | None:
    """What is there, by its mode; None where nothing is."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{_shown(path)} cannot be read: {_reason(error)}; correct the name") from error


def _shown(path: Path) -> str:
    name = str(path)
    return (name if name.isprintable() else repr(name))[:_CHARACTERS_SHOWN]


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def read_text(path: Path, remedy: str) -> str:
    """The UTF-8 text of a file. Raises `InputError`, which names the file and ends with the `remedy`."""
    if not is_file(path):
        raise InputError(f"there is no {path} to read; {remedy}")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}; {remedy}") from error


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """The JSON object in a file. Raises `InputError`, which names the file and ends with the `remedy`."""
    text = read_text(path, remedy)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # other than of JSON: too many digits, or lists in lists
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path} is damaged: it is no JSON{where}; {remedy}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: it must hold an object, got {type(content).__name__}; {remedy}")
    return content


def write_lasting(path: Path, content: bytes) -> None:
    """Put a file that only its owner may read in place of what was there: whole or not at all, even if power fails.

    Raises `OSError` of a full or broken disk.
    """
    fresh = path.with_name(path.name + ".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)  # else a power failure may bring the old file back


@contextmanager
def alone(path: Path, refusal: str, patience: float = 0.0) -> Iterator[None]:
    """Nobody else holds the lock at `path` in the meantime, a file of this user alone, which stays.

    Raises `InputError` where somebody holds it for longer than `patience` seconds, and where the file system has none.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, alone(Path(folder, "lock"), "busy"):
        ...     with alone(Path(folder, "lock"), "somebody else is at work; wait"):
        ...         pass
        Traceback (most recent call last):
        federation.contract.errors.InputError: somebody else is at work; wait
    """
    deadline = time.monotonic() + patience
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _locked(file, path):
            if time.monotonic() >= deadline:
                raise InputError(refusal)
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(file)


def _locked(file: int, path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # as of some network file systems
        raise InputError(
            f"{path} cannot be locked ({error.strerror}), so that two processes could work there at once; use a folder "
            "on a disk of this machine"
        ) from error
    return True


def sync_folder(path: Path) -> None:
    """Bring to the disk which files a folder has. Raises `OSError`."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
