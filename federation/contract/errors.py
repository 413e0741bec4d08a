"""Failures that a user can act on, each with its exit code of the command line."""

import difflib
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

DEBUG = "FEDERATION_DEBUG"  # environment variable: errors that nobody foresaw come with their traceback

_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


class FederationError(Exception):
    """A failure whose message is one sentence for the user: parameter, allowed, received, what to do."""

    exit_code = 1


class InputError(FederationError, ValueError):
    """A scenario, a data file, a message or an argument that cannot be used; a `ValueError` as Python knows them."""

    exit_code = 2


class BudgetExceededError(FederationError):
    """A release would spend more than the declared privacy budget."""

    exit_code = 3


class QuorumError(FederationError):
    """Fewer parties answered than the declared public quorum."""

    exit_code = 4


def told(error: Exception) -> str:
    """What to tell of an error: its text, or in one line what it is where nobody foresaw it, and how to see more."""
    if isinstance(error, FederationError):
        return str(error)
    if unwritable(error):
        where = getattr(error, "filename", None) or "a file"
        return (
            f"{where} cannot be read or written: {getattr(error, 'strerror', None) or error}; let this user do so, or "
            "free some room on its disk"
        )
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"unexpected {what}; run with {DEBUG}=1 for the traceback"


@contextmanager
def refusing(problem: str) -> Iterator[None]:
    """What Python raises inside for values of another form becomes an `InputError`: the problem, and what was wrong.

    An `InputError` comes out as it is.

    Examples:
        >>> with refusing("the settings cannot be read"):
        ...     {"epsilon": "one"}["delta"]
        Traceback (most recent call last):
        federation.contract.errors.InputError: the settings cannot be read: KeyError('delta')
    """
    try:
        yield
    except InputError:
        raise
    except _MALFORMED as error:
        # The text of a KeyError is but the key, and an exception of a library may have none.
        wrong = repr(error) if isinstance(error, KeyError) or not str(error) else str(error)
        raise InputError(f"{problem}: {wrong:.200}") from error


@contextmanager
def writing(what: object, remedy: str) -> Iterator[None]:
    """What cannot be written becomes an `InputError`: what it is, why the system refuses, and what to do.

    Examples:
        >>> with writing("the report to there/is/none", "name another --out"):
        ...     open("there/is/none", "w")
        Traceback (most recent call last):
        federation.contract.errors.InputError: cannot write the report to there/is/none: No such file or
        directory; name another --out
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {what}: {error.strerror}; {remedy}") from error


def of_disk(error: BaseException) -> bool:
    """Whether a disk is full, or refuses to be written to for other reasons: a fault of nothing that is computed.

    Examples:
        >>> of_disk(OSError(errno.ENOSPC, "No space left on device")), of_disk(FileNotFoundError(errno.ENOENT, "gone"))
        (True, False)
    """
    return isinstance(error, OSError) and error.errno in _REFUSALS


def unwritable(error: BaseException) -> bool:
    """Whether a file may not be written or read, or its disk takes no more: for whoever started a program to mend."""
    return of_disk(error) or isinstance(error, PermissionError)


def nearest_name(name: str, allowed: Iterable[str]) -> str:
    """`"; did you mean 'x'?"` for the closest allowed name, or an empty string when none is close.

    Examples:
        >>> nearest_name("vots", ["votes", "counts"])
        "; did you mean 'votes'?"
    """
    match = difflib.get_close_matches(str(name), [str(a) for a in allowed], n=1, cutoff=0.6)
    return f"; did you mean '{match[0]}'?" if match else ""
