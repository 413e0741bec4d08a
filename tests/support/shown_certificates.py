"""Servers that show a certificate of a deployment."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenarios.deployment.certificates import SERVER, SERVER_KEY


@contextmanager
def showing(folder: Path) -> Iterator[str]:
    """The address of a server of this machine that shows the certificate of the folder, and is reached by no site."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / SERVER, folder / SERVER_KEY)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    with listening.accept()[0] as there:
                        context.wrap_socket(there, server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
