"""Random draws for simulations and privacy noise, and digests of contents.

Each draw is keyed by (seed, purpose, party, trial), so that results do not depend on the order of the draws.
`generator` is for draws that need not be secret: splits and classifier seeds. `NoiseBits`, a ChaCha20 stream, is for
privacy noise. With `seed=None` both take their key from the operating system. A seeded run is a simulation, and its
releases must not be published.

`digest` names contents: equal texts and arrays have equal digests.
"""

import hashlib
import secrets
from collections.abc import Mapping

import numpy as np

from federation.contract.errors import InputError
from federation.contract.validation import shown


def _key(seed: int | None, purpose: str, party: int, trial: int) -> bytes:
    if seed is None:
        return secrets.token_bytes(32)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InputError(f"seed must be an integer from 0 to 2^63 - 1, got {shown(seed)}")
    return hashlib.sha256(f"{seed}|{purpose}|{party}|{trial}".encode()).digest()


def generator(seed: int | None, purpose: str, party: int = -1, trial: int = 0) -> np.random.Generator:
    """An independent numpy generator for one (seed, purpose, party, trial); party -1 is nobody's.

    Raises `InputError` for a seed that is not from 0 to 2^63 - 1.

    Examples:
        >>> generator(0, "split", party=3).integers(0, 100, 3).tolist()
        [44, 57, 53]
        >>> generator(0, "split", party=3).integers(0, 100, 3).tolist()  # whoever else has drawn
        [44, 57, 53]
    """
    key = _key(seed, purpose, party, trial)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(int.from_bytes(key, "little"))))


class NoiseBits:
    """A stream of cryptographic random bits for privacy noise (ChaCha20, RFC 8439, keyed as above).

    Raises `InputError` as `generator`.

    Examples:
        >>> NoiseBits(0, "noise", party=3).words(2)
        array([ 1602730656086730029, 14795764303348683491], dtype=uint64)
    """

    def __init__(self, seed: int | None, purpose: str, party: int = -1, trial: int = 0) -> None:
        # Imported here because the command line must start without it.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        key = _key(seed, f"noise|{purpose}", party, trial)
        self._stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def words(self, count: int) -> np.ndarray:
        """`count` independent uniform 64-bit words, shape (count,), dtype uint64."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype="<u8")


def digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256, in hexadecimal, of a text and of named arrays: their types, shapes and bytes in row order.

    Examples:
        >>> digest("map", {"a": np.arange(3)})[:16]
        'd72b83ec12c4d22d'
    """
    found = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        found.update(array.data if array.size else b"")
    return found.hexdigest()
