"""The keys of an exchange, as files that only their owner may read.

- A site has one key on the curve P-384. Flower knows the site's node by this key, and the site signs with it what it
  sends. An Ed25519 key follows from it, by which other sites know the site in secure aggregations (`sums_key`).
- A helper server has such a P-384 key, too. Its X25519 key, for which sites mask what they send, follows from that
  (`masks_key`).
- An aggregator has an Ed25519 key for its queries. For each exchange it has an X25519 key to which sites seal
  responses.
"""

import hashlib
import os
import stat
from pathlib import Path
from typing import TypeVar

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as _on_curve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from federation.contract.errors import InputError

Private = EllipticCurvePrivateKey | Ed25519PrivateKey | X25519PrivateKey
Public = EllipticCurvePublicKey | Ed25519PublicKey
K = TypeVar("K", EllipticCurvePrivateKey, Ed25519PrivateKey, X25519PrivateKey)

_SUMS = b"federation secure sums, Ed25519, v1"
_MASKS = b"federation secure sums, X25519, v1"
_NAMES = {EllipticCurvePrivateKey: "P-384", Ed25519PrivateKey: "Ed25519", X25519PrivateKey: "X25519"}


def new_site_key() -> EllipticCurvePrivateKey:
    """A key for a site."""
    return _on_curve(SECP384R1())


def sums_key(key: EllipticCurvePrivateKey) -> Ed25519PrivateKey:
    """The key with which a site signs in secure sums: HKDF-SHA256 of its own key, for that use alone.

    So there is one secret to keep, and no signature of either key is one of the other.
    """
    return Ed25519PrivateKey.from_private_bytes(_following(key, _SUMS))


def masks_key(key: EllipticCurvePrivateKey) -> X25519PrivateKey:
    """The key for which sites mask their parts, of a second server: it follows from the server's own as `sums_key`."""
    return X25519PrivateKey.from_private_bytes(_following(key, _MASKS))


def _following(key: EllipticCurvePrivateKey, use: bytes) -> bytes:
    secret = key.private_numbers().private_value.to_bytes(key.key_size // 8, "big")
    return HKDF(hashes.SHA256(), 32, salt=None, info=use).derive(secret)


def fingerprint(key: Public) -> str:
    """SHA-256 of a public key in its canonical form, 64 hexadecimal digits; what people compare by telephone.

    Examples:
        >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        >>> fingerprint(Ed25519PublicKey.from_public_bytes(bytes(32)))[:16]
        '722abd12e99a5367'
    """
    return hashlib.sha256(
        key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    ).hexdigest()


def save_key(path: Path, key: Private) -> None:
    """Write a private key to a new file that only its owner may read. Raises `FileExistsError`: none is replaced."""
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(encoded)
        file.flush()
        os.fsync(file.fileno())


def load_key(path: Path, kind: type[K]) -> K:
    """The private key of a file. Raises `InputError` where there is none of that kind, or others may read the file."""
    require_private(path)
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path} holds no private key without a password: {error!s:.100}") from error
    if not isinstance(key, kind) or (isinstance(key, EllipticCurvePrivateKey) and key.curve.name != SECP384R1.name):
        raise InputError(f"{path} holds a key of another kind; it must be a private {_NAMES[kind]} key")
    return key


def raw_public(key: X25519PrivateKey | Ed25519PrivateKey) -> bytes:
    """The 32 bytes of its public key."""
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def public_text(key: Public) -> str:
    """A public key as one line, as OpenSSH writes it."""
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def site_key_from_text(text: str, where: str) -> EllipticCurvePublicKey:
    """A site's public key from one line. Raises `InputError` that names `where` the text is from."""
    key = _public(text, where)
    if not isinstance(key, EllipticCurvePublicKey) or key.curve.name != SECP384R1.name:
        raise InputError(f"{where}: must be a P-384 public key, got {text!r:.60}")
    return key


def ed25519_key_from_text(text: str, where: str) -> Ed25519PublicKey:
    """An aggregator's public key, or a site's for secure sums, from one line. Raises as `site_key_from_text`."""
    key = _public(text, where)
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{where}: must be an Ed25519 public key, got {text!r:.60}")
    return key


def _public(text: str, where: str) -> object:
    try:
        return serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm, NotImplementedError) as error:  # the last for a compressed point
        # It may be a part of a private key, sent by mistake, and is not shown.
        raise InputError(
            f"{where}: no public key; those of a site are in its NAME.pub, and what says PRIVATE KEY is never sent"
        ) from error


def require_private(path: Path) -> None:
    """Refuse a file that others may read or that is somebody else's. Raises `InputError` that says what to type."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise InputError(
            f"{path} may be read by others than its owner; type: chmod {'700' if path.is_dir() else '600'} {path}"
        )
    if found.st_uid != os.geteuid():
        raise InputError(f"{path} belongs to another user; type: chown {os.geteuid()} {path}")
