"""Messages of a secure aggregation, with one server or with a leader and a helper server; the plan fixes their sizes.

With one server:

| query | to a party | from it |
|---|---|---|
| 0 `KEYS` | the plan | `Keys`: two fresh public keys |
| 1 `SHARES` | its neighbours' keys | `Letters`: shares of its two secrets, a letter to each neighbour |
| 2 `MASKED` | letters to it | `Masked`: its masked integers, and whose masks are in them |
| 3 `AGREE` | `Living`: who is counted, with the neighbours' receipts | its signature on who is counted |
| 4 `UNMASK` | its neighbours' signatures | one share of each neighbour |

With a server that is taken to follow the protocol nothing is signed, and query 3 is left out: query 4 is `Counted`.

With two servers that do not collude, the leader adds and the helper removes the masks. The code calls the helper the
second server. A party sends y = v + PRG(key) modulo 2^64 to the leader, with a fresh X25519 key. The helper, whose key
the plan names, finds the same mask key from that, and tells the leader the sum of all masks, once. The party signs its
key. So the leader can neither invent parties nor leave out so many that less than a quorum is in the sum.

The party does not sign y. The helper knows the mask, and with a hash of y it could try what v may be. A share of noise
is little, and of Laplace noise among many parties mostly 0. The carrier of y must make sure that y is the party's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.numerics.rows import Booleans, Integers
from federation.secure_aggregation.masks import CHECK, SHARE, SIGNATURE, TAG, Bytes, Words, derived, signed
from federation.secure_aggregation.plan import KEY, SumPlan

KEYS, SHARES, MASKED, AGREE, UNMASK = range(5)
SELF, PAIR = 0, 1  # kinds of secrets: of the mask of its own, of the masks it shares with neighbours
LETTER = 2 * SHARE + TAG
_NUMBER = 4  # bytes of a party's number


def queries(plan: SumPlan) -> tuple[int, ...]:
    """Those of a sum, in their order; with a second server one, to which `Uploaded` is the answer."""
    if plan.second:
        return (KEYS,)
    return (KEYS, SHARES, MASKED, AGREE, UNMASK) if plan.signed else (KEYS, SHARES, MASKED, UNMASK)


@dataclass(frozen=True, eq=False)
class Table:
    """Cells of equally many bytes about different parties: `numbers` (n,), `cells` (n, width) uint8."""

    numbers: Integers
    cells: Bytes

    def packed(self) -> bytes:
        """Each number in 4 bytes before its cell."""
        numbers = np.ascontiguousarray(self.numbers, dtype="<u4").view(np.uint8).reshape(-1, _NUMBER)
        return np.hstack([numbers, self.cells]).tobytes()

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Each number with its cell."""
        width, cells = self.cells.shape[1], self.cells.tobytes()
        for place, number in enumerate(self.numbers.tolist()):
            yield number, cells[place * width : (place + 1) * width]

    @classmethod
    def read(cls, data: bytes, width: int, plan: SumPlan, most: int | None = None) -> "Table":
        """From `packed`, of at most so many parties (all neighbours).

        Raises `InputError` for another size, or parties that come twice or are none.
        """
        most = plan.neighbours if most is None else most
        if len(data) % (_NUMBER + width) or len(data) > most * (_NUMBER + width):
            raise InputError(_SIZE)
        rows: NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8).reshape(-1, _NUMBER + width)
        numbers = np.ascontiguousarray(rows[:, :_NUMBER]).view("<u4").ravel().astype(np.int64)
        if len(set(numbers.tolist())) < len(numbers) or numbers.max(initial=0) >= plan.parties:
            raise InputError("a message of a masked sum names a party twice, or one that is none; end the sum")
        return cls(numbers, rows[:, _NUMBER:])


_SIZE = "a message of a masked sum has not the size that its plan gives it; end the sum"


@dataclass(frozen=True)
class Keys:
    """A party's public keys: to which letters are sealed, and from which masks come; its signature on both, or none."""

    letters: bytes
    masks: bytes
    signature: bytes = b""

    def packed(self) -> bytes:
        """One after the other."""
        return self.letters + self.masks + self.signature

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> "Keys":
        """From `packed`. Raises `InputError` for another size."""
        require_size(data, keys_width(plan))
        return cls(data[:KEY], data[KEY : 2 * KEY], data[2 * KEY :])


@dataclass(frozen=True)
class Letters:
    """What tells a recovered secret from a wrong one, and a sealed letter to each neighbour."""

    check: bytes
    letters: Table

    def packed(self) -> bytes:
        """One after the other."""
        return self.check + self.letters.packed()

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> "Letters":
        """From `packed`. Raises `InputError` for another size."""
        return cls(data[:CHECK], Table.read(data[CHECK:], LETTER, plan))


@dataclass(frozen=True, eq=False)
class Masked:
    """Masked integers modulo 2^64 (d,), and the receipt: bits of the neighbours whose masks are in them, signed."""

    vector: Words
    included: bytes
    signature: bytes = b""

    def packed(self) -> bytes:
        """One after the other."""
        return self.vector.astype("<u8", copy=False).tobytes() + self.included + self.signature

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> "Masked":
        """From `packed`. Raises `InputError` for another size."""
        end = 8 * plan.numbers
        require_size(data, end + receipt_width(plan))
        return cls(np.frombuffer(data[:end], dtype="<u8"), data[end : end + plan.within], data[end + plan.within :])


@dataclass(frozen=True)
class Living:
    """Bits of the parties that are counted, and the receipts of a party's neighbours."""

    live: bytes
    receipts: Table

    def packed(self) -> bytes:
        """One after the other."""
        return self.live + self.receipts.packed()

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> "Living":
        """From `packed`. Raises `InputError` for another size."""
        end = -(-plan.parties // 8)
        return cls(data[:end], Table.read(data[end:], receipt_width(plan), plan))


@dataclass(frozen=True)
class Counted:
    """How many parties are counted, and bits of a party's neighbours: what a server is believed that is obeyed."""

    parties: int
    near: bytes

    def packed(self) -> bytes:
        """One after the other."""
        return self.parties.to_bytes(_NUMBER, "little") + self.near

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> "Counted":
        """From `packed`. Raises `InputError` for another size."""
        require_size(data, _NUMBER + plan.within)
        return cls(int.from_bytes(data[:_NUMBER], "little"), data[_NUMBER:])


def keys_width(plan: SumPlan) -> int:
    """Bytes of `Keys`."""
    return 2 * KEY + _signature(plan)


def receipt_width(plan: SumPlan) -> int:
    """Bytes of a receipt."""
    return plan.within + _signature(plan)


def packed_bits(values: Booleans) -> bytes:
    """The first is the lowest bit of the first byte.

    Examples:
        >>> packed_bits(np.array([True, False, False, True])), unpacked_bits(b"\\x09", 4).tolist()
        (b'\\t', [True, False, False, True])
    """
    return np.packbits(values, bitorder="little").tobytes()


def unpacked_bits(data: bytes, count: int) -> Booleans:
    """So many of `packed_bits`. Raises `InputError` for another size."""
    require_size(data, -(-count // 8))
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=count, bitorder="little").astype(bool)


def has_bit(data: bytes, place: int) -> bool:
    """One of `packed_bits`.

    Examples:
        >>> has_bit(b"\\x09", 3), has_bit(b"\\x09", 2)
        (True, False)
    """
    return bool(data[place >> 3] >> (place & 7) & 1)


def require_size(data: bytes, size: int) -> None:
    """Raises `InputError` for another size."""
    if len(data) != size:
        raise InputError(_SIZE)


def as_cells(parts: list[bytes], width: int) -> Bytes:
    """Equally long bytes as cells (n, width)."""
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(len(parts), width)


def _signature(plan: SumPlan) -> int:
    return SIGNATURE if plan.signed else 0


RECEIPT = KEY + SIGNATURE  # bytes
MOST_RECEIPTS = 100_000  # in one message from server to server
SAYS = "two"


@dataclass(frozen=True, eq=False)
class Uploaded:
    """A party's fresh public key, its masked integers (d,), and its signature on the key."""

    key: bytes
    vector: Words
    signature: bytes

    def packed(self) -> bytes:
        """One after the other."""
        return b"".join((self.key, self.signature, self.vector.astype("<u8", copy=False).data))

    @classmethod
    def read(cls, data: bytes, plan: SumPlan) -> "Uploaded":
        """From `packed`. Raises `InputError` for another size."""
        start = KEY + SIGNATURE
        require_size(data, upload_width(plan))
        return cls(data[:KEY], np.frombuffer(data[start:], dtype="<u8"), data[KEY:start])

    @property
    def receipt(self) -> bytes:
        """What the second server gets of it: the key, and the signature."""
        return self.key + self.signature


def upload_width(plan: SumPlan) -> int:
    """Bytes of what a party uploads."""
    return KEY + SIGNATURE + 8 * plan.numbers


def vouched(receipt: bytes, number: int, key: bytes, plan: SumPlan) -> bool:
    """Whether the party of this number, whose key on the roster that is, signed it."""
    return signed(key, receipt[KEY:], plan.digest, SAYS, number, receipt[:KEY])


def mask_key(common: bytes, plan: SumPlan, number: int, key: bytes) -> bytes:
    """Of the mask of one party, from what it shares with the second server."""
    return derived(common, plan.digest, SAYS, number.to_bytes(4, "little") + key)
