"""Keeps what the cloud knows on disk: one folder per Machine uid, and the list of facts.

Crash-safe by rename and append; read again by a restarted provider. Blocking and short: the
callers run it in threads. Nothing here holds a document; that file is ``boot``'s.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from dev.cloud.machine import Machine, Phase, State

_STATE_FILE = "machine.json"
_UID_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz-")


class Fact(StrEnum):
    """What ``facts.jsonl`` tells; each once per machine, but for the two failures."""

    CREATED = "created"
    BOOTING = "booting"
    RUNNING = "running"
    DOCUMENT_FINISHED = "document-finished"
    DELETE_REQUESTED = "delete-requested"
    DELETED = "deleted"
    CREATE_FAILED = "create-failed"
    DELETE_FAILED = "delete-failed"


def timestamp() -> str:
    """The wall clock, RFC 3339 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Store:
    """The cloud's memory below one root folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._facts = root / "facts.jsonl"
        self._known = self._read_known()

    def folder(self, uid: str) -> Path:
        """The folder of one machine.

        Raises:
            ValueError: the uid could leave the root; the API server makes none of that kind.
        """
        if not uid or not set(uid) <= _UID_CHARACTERS:
            message = "cannot name a folder: metadata.uid has characters that uids do not have"
            raise ValueError(message)
        return self._root / uid

    def load(self, uid: str) -> State | None:
        """Answers what is known of a machine; ``None``: nothing."""
        try:
            raw = json.loads((self.folder(uid) / _STATE_FILE).read_text())
        except FileNotFoundError:
            return None
        return State(**{**raw, "phase": Phase(raw["phase"])})

    def save(self, uid: str, state: State) -> None:
        """Keeps ``state``; a crash leaves the old or the new one, whole."""
        folder = self.folder(uid)
        folder.mkdir(mode=0o700, exist_ok=True)
        temporary = folder / f".{_STATE_FILE}"
        temporary.write_text(json.dumps(dataclasses.asdict(state)))
        temporary.replace(folder / _STATE_FILE)

    def record(self, fact: Fact, machine: Machine, machine_id: str) -> None:
        """Appends a fact with the time of this call.

        Idempotency: a fact that stands there is not written again, also after a restart; failures
        are, because each try is a fact of its own.
        """
        with self._lock:
            repeatable = fact in {Fact.CREATE_FAILED, Fact.DELETE_FAILED}
            if (machine.uid, fact) in self._known and not repeatable:
                return
            self._known.add((machine.uid, fact))
            line = {
                "at": timestamp(),
                "fact": fact.value,
                "namespace": machine.namespace,
                "name": machine.name,
                "uid": machine.uid,
                "machineID": machine_id,
            }
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(os.open(self._facts, flags, 0o644), "w") as stream:
                stream.write(json.dumps(line) + "\n")

    def _read_known(self) -> set[tuple[str, Fact]]:
        if not self._facts.exists():
            return set()
        told = self._facts.read_bytes()
        whole = told[: told.rfind(b"\n") + 1]
        if whole != told:
            # The last line of a writer that was killed; its fact comes again.
            os.truncate(self._facts, len(whole))
        entries = [json.loads(line) for line in whole.splitlines()]
        return {(entry["uid"], Fact(entry["fact"])) for entry in entries}
