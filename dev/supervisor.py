"""Owns several children: their logs, and the order in which they end.

What is true of children together. Everything in `dev` and the tests may import it.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

from dev.process import Child, ProcessError, Program, log_tail


class Supervisor:
    """Owns children, their logs, and the order in which they end.

    Args:
        run_dir: logs go to `run_dir/logs/<name>.log`, which one supervisor begins anew and
            then appends to, so that a restarted program's earlier words stay.
    """

    def __init__(self, run_dir: Path) -> None:
        self.logs = run_dir / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._children: list[Child] = []
        self._named: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, program: Program) -> Child:
        """Start a program and own it until `stop`."""
        log = self._log(program)
        if program.name not in self._named:
            self._named.add(program.name)
            log.unlink(missing_ok=True)
        child = Child(program, log)
        self._children.append(child)
        return child

    def run(self, program: Program, *, timeout_s: float) -> bool:
        """Run a program to its end; whether it exited with 0.

        Raises:
            ProcessError: it still runs after `timeout_s`; it is killed.
        """
        child = self.start(program)
        try:
            if not child.ended_within(timeout_s):
                detail = f"still running after {timeout_s:g} s; {log_tail(child.log)}"
                message = f"cannot run {program.name}: {detail}"
                raise ProcessError(message)
            return child.status == 0
        finally:
            child.kill()
            self._children.remove(child)

    def check(self, program: Program, *, timeout_s: float) -> None:
        """Run a program to its end and insist on success.

        Raises:
            ProcessError: it failed or took too long; quotes its last log lines.
        """
        if not self.run(program, timeout_s=timeout_s):
            message = f"cannot run {program.name}: it failed; {log_tail(self._log(program))}"
            raise ProcessError(message)

    def stop(self) -> None:
        """End every child, the youngest first.

        Idempotency: a second call finds nothing to end.
        """
        while self._children:
            self._children.pop().stop()

    def _log(self, program: Program) -> Path:
        return self.logs / f"{program.name}.log"
