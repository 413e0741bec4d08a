"""A certificate authority of a deployment's own, and the certificate of its SuperLink.

Sites trust this authority and no other for the one address in their plan, so no public authority has to be asked.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from federation.contract.errors import InputError
from federation.contract.files import write_lasting
from federation.signed_messages.keys import load_key, new_site_key, save_key

AUTHORITY, AUTHORITY_KEY = "ca.crt", "ca.key"
SERVER, SERVER_KEY = "server.crt", "server.key"
LOOPBACK = ("localhost", "127.0.0.1")  # by which the coordinator's own programs reach the SuperLink

_SERVER_DAYS = 398  # more is refused by some readers of certificates
_AUTHORITY_DAYS = 3650
_EARLIER = datetime.timedelta(days=1)  # for clocks that differ


def make_authority(folder: Path, name: str) -> str:
    """Make the authority of a deployment in its folder; its certificate as PEM text.

    Raises `FileExistsError`: none is replaced.
    """
    key = new_site_key()
    save_key(folder / AUTHORITY_KEY, key)
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = {use: use in ("key_cert_sign", "crl_sign") for use in _USES}
    certificate = (
        _builder(f"{name} authority", f"{name} authority", key.public_key(), _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA384())
    )
    write_lasting(folder / AUTHORITY, _pem(certificate))
    return _pem(certificate).decode()


def make_server(folder: Path, name: str, hosts: Sequence[str]) -> None:
    """Make the certificate of the SuperLink for some names and addresses, and those of the machine itself.

    An older one, and its key, are replaced. Raises `InputError` for a host that is neither a name nor an address.
    """
    authority = _read(folder / AUTHORITY)
    signer = load_key(folder / AUTHORITY_KEY, EllipticCurvePrivateKey)  # type: ignore[type-abstract, unused-ignore]
    key = new_site_key()
    certificate = (
        _builder(f"{name} superlink", f"{name} authority", key.public_key(), _SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{use: use == "digital_signature" for use in _USES}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_known_as(host) for host in dict.fromkeys([*hosts, *LOOPBACK])]),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()),  # type: ignore[arg-type]
            critical=False,
        )
        .sign(signer, hashes.SHA384())
    )
    (folder / SERVER_KEY).unlink(missing_ok=True)
    save_key(folder / SERVER_KEY, key)
    write_lasting(folder / SERVER, _pem(certificate))


def require_valid(folder: Path, host: str, now: datetime.datetime | None = None) -> None:
    """Refuse a certificate of the SuperLink that sites would not accept.

    Raises `InputError` in a sentence for one that is of another authority, has run out, or is not for this host.
    """
    authority, server = _read(folder / AUTHORITY), _read(folder / SERVER)
    today = now or datetime.datetime.now(datetime.UTC)
    signer = authority.public_key()
    try:
        server.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise InputError(
            f"{folder / SERVER} was not signed by the authority in {folder / AUTHORITY}, which the sites know; restore "
            "the two from one copy of the folder"
        ) from None
    for path, certificate in ((folder / AUTHORITY, authority), (folder / SERVER, server)):
        if today > certificate.not_valid_after_utc:
            raise InputError(
                f"{path} was valid until {certificate.not_valid_after_utc:%Y-%m-%d}; "
                + (
                    "run `federation deploy` again, in a new folder"
                    if certificate is authority
                    else f"make another: federation deploy {folder} --hosts {host}"
                )
            )
        if today < certificate.not_valid_before_utc:
            raise InputError(
                f"{path} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} on, and this machine's clock says "
                f"{today:%Y-%m-%d}; set the clock"
            )
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if _known_as(host) not in [*names]:
        raise InputError(
            f"{folder / SERVER} is not for {host}, where sites look for the SuperLink; make another: federation deploy "
            f"{folder} --hosts {host}"
        )
    if not isinstance(signer, EllipticCurvePublicKey):
        raise InputError(f"{folder / AUTHORITY} is no authority that `federation deploy` has made")


_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _builder(subject: str, issuer: str, key: EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _known_as(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InputError(
            f"{host!r} is neither the name nor the address of a machine; name it as sites reach it"
        ) from None


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _read(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path} holds no certificate: {error!s:.100}; restore it from a copy") from error
