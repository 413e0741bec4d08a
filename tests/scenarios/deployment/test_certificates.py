"""The authority and the certificate of a SuperLink do what OpenSSL takes them for, and are refused in a sentence."""

import datetime
import socket
import ssl
import threading

import pytest
from cryptography import x509
from support.refusals import refused
from support.shown_certificates import showing

from federation.signed_messages.keys import new_site_key
from parties.site.message_queue import Closed, Mailbox
from scenarios.deployment import certificates

LATER = datetime.timedelta(days=399)


@pytest.fixture
def folder(tmp_path):
    certificates.make_authority(tmp_path, "trial")
    certificates.make_server(tmp_path, "trial", ["link.example.org", "192.0.2.7"])
    return tmp_path


@pytest.fixture
def other(tmp_path):
    """A folder of another authority, with a certificate of its own."""
    made = tmp_path / "other"
    made.mkdir()
    certificates.make_authority(made, "trial")
    certificates.make_server(made, "trial", [])
    return made


def shaken(folder, root, host):
    """What a client that trusts `root` says of a server with the certificate of `folder`, over real TLS."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / certificates.SERVER, folder / certificates.SERVER_KEY)
    client = ssl.create_default_context(cafile=root)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    here, there = socket.socketpair()

    def serve():
        try:
            server.wrap_socket(there, server_side=True).close()
        except OSError:
            there.close()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        client.wrap_socket(here, server_hostname=host).close()
    except ssl.SSLError as error:
        return str(error)
    finally:
        here.close()
        serving.join()
    return "trusted"


@pytest.mark.parametrize("host", ["link.example.org", "192.0.2.7", "localhost", "127.0.0.1"])
def test_whoever_knows_the_authority_trusts_the_superlink_under_its_names(folder, host):
    assert shaken(folder, folder / certificates.AUTHORITY, host) == "trusted"
    certificates.require_valid(folder, host)


def test_nobody_trusts_it_under_another_name_or_by_another_authority_whose_own_is_refused(folder, other):
    assert "mismatch" in shaken(folder, folder / certificates.AUTHORITY, "other.example.org")
    assert "CERTIFICATE_VERIFY_FAILED" in shaken(folder, other / certificates.AUTHORITY, "localhost")
    (other / certificates.SERVER).replace(folder / certificates.SERVER)
    refused(r"server\.crt.*ca\.crt", certificates.require_valid, folder, "localhost")


def test_the_authority_signs_certificates_the_certificate_serves_and_keys_are_for_their_owner_alone(folder):
    read = x509.load_pem_x509_certificate
    authority, server = (read((folder / name).read_bytes()) for name in (certificates.AUTHORITY, certificates.SERVER))
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value.ca
    assert authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert (server.not_valid_after_utc - server.not_valid_before_utc).days == 399
    for name in (certificates.AUTHORITY_KEY, certificates.SERVER_KEY):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_a_new_certificate_replaces_the_old_one_under_the_same_authority_which_none_replaces(folder):
    before = (folder / certificates.SERVER).read_bytes()
    certificates.make_server(folder, "trial", ["new.example.org"])
    assert (folder / certificates.SERVER).read_bytes() != before
    assert shaken(folder, folder / certificates.AUTHORITY, "new.example.org") == "trusted"
    refused(None, certificates.make_server, folder, "trial", ["zürich.example"])  # a host that no certificate can name
    with pytest.raises(FileExistsError):
        certificates.make_authority(folder, "trial")


@pytest.mark.parametrize(
    ("host", "later", "named"),
    [
        ("localhost", LATER, r"server\.crt.*--hosts"),  # it has expired
        ("localhost", 10 * LATER, r"ca\.crt"),
        ("localhost", -LATER, r"ca\.crt"),  # a matter of clocks
        ("other.org", LATER - LATER, r"other\.org.*--hosts.*other\.org"),
    ],
    ids=["expired", "its authority has expired", "of the future", "of another host"],
)
def test_an_expired_one_and_one_for_another_host_are_refused_with_what_to_type(folder, host, later, named):
    refused(named, certificates.require_valid, folder, host, datetime.datetime.now(datetime.UTC) + later)


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_refused(folder, content):
    (folder / certificates.SERVER).unlink()
    if content is not None:
        (folder / certificates.SERVER).write_bytes(content)
    refused(r"server\.crt", certificates.require_valid, folder, "localhost")


def test_a_site_that_is_shown_an_expired_one_says_what_to_ask_for(folder, monkeypatch, caplog):
    monkeypatch.setattr(certificates, "_EARLIER", LATER)
    monkeypatch.setattr(certificates, "_SERVER_DAYS", -1)
    certificates.make_server(folder, "trial", [])
    with showing(folder) as address:
        box = Mailbox(address, (folder / certificates.AUTHORITY).read_bytes(), new_site_key(), 10_000, print)
        threading.Timer(1.0, box.closing.set).start()
        with pytest.raises(Closed), box.opened():
            raise AssertionError("the site believes it")
    [told] = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert "the SuperLink shows a certificate that this site does not accept" in told
    assert "certificate has expired" in told
    assert "ask the coordinator whether it has expired and whether the clocks of both machines agree" in told
