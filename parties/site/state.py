"""The folder in which a site keeps what it must not forget, and of which one process at a time is the owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from federation.contract.errors import InputError
from federation.contract.files import alone
from federation.letters.keys import require_private
from parties.site.journal import Journal

JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class State:
    """A folder that only its owner may enter, with the journal, the answers, and what is known of tables and plans."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> State:
        """The folder, new or as it is."""
        for each in (folder, folder / "answers"):
            each.mkdir(mode=0o700, parents=each is folder, exist_ok=True)
        return cls(folder)

    @classmethod
    def found(cls, folder: Path) -> State:
        """The folder as it is. Raises `InputError` where it is not whole, or others may read it."""
        if not folder.is_dir():
            raise InputError(
                f"there is no folder {folder}, which knows what this site has spent; restore it, or correct 'state'"
            )
        require_private(folder)
        for path in folder.iterdir():
            require_private(path)
        answers = folder / "answers"
        if answers.is_dir() and any(answers.iterdir()) and not (folder / JOURNAL).exists():
            raise InputError(f"{folder / JOURNAL} is gone, and with it what this site has spent; restore it")
        return cls.made(folder)

    @property
    def answers(self) -> Path:
        """What has been answered, letter by letter."""
        return self.folder / "answers"

    def journal(self, reading: bool = False) -> Journal:
        """What has happened. To write in it takes being the `owned` one."""
        return Journal(self.folder / JOURNAL, reading)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the one process that may write here. Raises `InputError` while another one is."""
        busy = f"another process is at work in {self.folder}; stop the site that runs there, or wait for it"
        with alone(self.folder / "instance.lock", busy):
            yield
