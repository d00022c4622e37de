"""The schema as SQL, `reconciler/adapters/postgres/schema.sql`, to be read and compared.

Pg_dump of a migrated database, without what differs from run to run. A test fails when the
file is not what they make; `make generate` writes it.
"""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from dev import arguments
from dev.postgres import EXISTING_SERVER, Postgres, installation
from dev.process import ProcessError
from reconciler.adapters.postgres.connection import migrate

FILE = Path(__file__).parents[1] / "reconciler" / "adapters" / "postgres" / "schema.sql"
HEADER = "-- What the migrations make, for people to read; written by `make generate`.\n"
DUMP_TIMEOUT_S = 60.0
"""A schema of some twenty tables takes a tenth of a second."""

_PASSING = ("\\restrict", "\\unrestrict", "-- Dumped ", "SET ", "SELECT pg_catalog.set_config")
"""Begin the lines that hold a random word, a version or a setting of the session."""


def dump(dsn: str) -> str:
    """Answer a database's schema of ours, equal for equal schemas.

    Raises:
        ProcessError: pg_dump fails, for instance because the server is newer than it is.
    """
    parts = urlsplit(dsn)
    # Command lines are public on a host; the password travels in the environment.
    public = parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@", 1))
    answer = subprocess.run(
        [
            *(str(installation() / "bin" / "pg_dump"), "--schema-only", "--schema=plexsphere"),
            *("--no-owner", "--no-privileges", "--dbname", urlunsplit(public)),
        ],
        env={**os.environ, "PGPASSWORD": unquote(parts.password or "")},
        capture_output=True,
        text=True,
        timeout=DUMP_TIMEOUT_S,
        check=False,
    )
    if answer.returncode != 0:
        message = f"cannot dump schema: {answer.stderr.strip()}"
        raise ProcessError(message)
    return HEADER + _normal(answer.stdout)


def _normal(text: str) -> str:
    """Leave out passing lines, empty comments, and all but one of several empty lines."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(_PASSING) or line == "--":
            continue
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the file, from a server of our own."""
    arguments.none("dev.schema_dump", main.__doc__)
    os.environ.pop(EXISTING_SERVER, None)
    with tempfile.TemporaryDirectory(prefix="broker-schema-") as folder:
        # The server's own user must reach its data.
        Path(folder).chmod(0o711)
        with Postgres(Path(folder)) as server:
            dsn = server.create_database("schema")
            asyncio.run(migrate.migrate(dsn))
            FILE.write_text(dump(dsn), encoding="utf-8")
    print(FILE)


if __name__ == "__main__":
    main()
