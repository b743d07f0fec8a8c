"""Where a session keeps its files, and who may read them: the owner only (folders 0700, files 0600)."""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from automation.errors import UnknownSession, machine_error

_FOLDER = 0o700
_FILE = 0o600


@dataclass(frozen=True, kw_only=True)
class SessionFolder:
    """The files of one session, below `$RENTBLOCK_HOME/sessions/<id>`."""

    root: Path

    @property
    def session(self) -> str:
        """The session's id, which names the folder."""
        return self.root.name

    @property
    def home(self) -> Path:
        """`$RENTBLOCK_HOME`, which holds all sessions of this machine."""
        return self.root.parents[1]

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def lock(self) -> Path:
        """Held by the process that runs the session's loop."""
        return self.root / "loop.lock"

    @property
    def operation_lock(self) -> Path:
        """Held by the one child that may work on the stack."""
        return self.root / "operation.lock"

    @property
    def work(self) -> Path:
        """Pulumi's working folder: project, stack settings, and a link to our charts."""
        return self.root / "work"

    @property
    def state(self) -> Path:
        """The file backend, unless the target brings another."""
        return self.root / "state"

    @property
    def passphrase(self) -> Path:
        return self.root / "passphrase"

    @property
    def providers(self) -> Path:
        """The engine's AWS and EKS providers and how each was obtained, by name, as JSON."""
        return self.root / "providers.json"

    @property
    def half_made_releases(self) -> Path:
        """Helm releases that a killed engine was making, as its state had them; only until they are taken back."""
        return self.root / "half-made-releases.json"

    @property
    def api_key(self) -> Path:
        return self.root / "api-key"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def outputs(self) -> Path:
        return self.root / "outputs.json"

    def operation(self, number: int, name: str) -> Path:
        """The folder of one detached child: its output, its event log and its last word."""
        return self.root / "logs" / f"{number:03}-{name}"

    def create(self) -> None:
        """Make the folders and the passphrase. Raises MachineInTheWay when this machine does not let us."""
        try:
            for folder in (self.root, self.work, self.state, self.root / "logs"):
                folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
            if not self.passphrase.exists():
                write_whole(self.passphrase, secrets.token_urlsafe(32))
        except OSError as error:
            raise machine_error(error) from error


def write_whole(path: Path, text: str, mode: int = _FILE) -> None:
    """Write a file whole or not at all; but for another `mode` only its owner may read it.

    Raises MachineInTheWay when this machine does not let us."""
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staged.unlink(missing_ok=True)
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except OSError as error:
        with suppress(OSError):
            staged.unlink(missing_ok=True)
        raise machine_error(error) from error


def session_folder(home: Path, session: str) -> SessionFolder:
    """The folder that a session of that id has or will have."""
    return SessionFolder(root=home / "sessions" / session)


def sessions(home: Path) -> tuple[SessionFolder, ...]:
    """All sessions that this machine knows, oldest id first."""
    try:
        return tuple(SessionFolder(root=journal.parent) for journal in sorted(home.glob("sessions/*/journal.jsonl")))
    except OSError as error:
        raise machine_error(error) from error


def find(home: Path, session: str | None) -> SessionFolder:
    """The session of that id; without one, the only or the latest session. Raises UnknownSession."""
    known = sessions(home)
    if session is None and known:
        return max(known, key=_opened_at)
    for folder in known:
        if folder.session == session:
            return folder
    names = ", ".join(folder.session for folder in known) or "none"
    raise UnknownSession(
        happened=f"There is no session {session}." if session else "There is no session yet.",
        remedy=f"Known below {home}: {names}.",
    )


def _opened_at(folder: SessionFolder) -> int:
    try:
        return folder.passphrase.stat().st_mtime_ns
    except OSError:
        return 0
