"""Nobody gets this process's memory, and it has room for its files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT_S = 30.0
NOBODY = 65534

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")

_REPORT = """
import ctypes, resource
from function.operating import memory_dumps
from reconciler.adapters import process_limits
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
memory_dumps.forbid()
memory_dumps.forbid()
process_limits.make_room_for_files()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
print(soft == (min(process_limits.OPEN_FILES_WANTED, hard) if hard > 0 else soft))
"""

_CRASH = """
import ctypes, os, resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
if {hardened}:
    from function.operating import memory_dumps
    memory_dumps.forbid()
os.kill(os.getpid(), signal.SIGSEGV)
"""

_PEEK = """
import os, sys
from function.operating import memory_dumps
if os.geteuid() == 0:
    os.setgid({nobody})
    os.setuid({nobody})
if {hardened}:
    memory_dumps.forbid()
else:
    import ctypes
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
print("up", flush=True)
sys.stdin.read()
"""


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_it_is_not_dumpable_writes_no_core_and_may_open_many_files() -> None:
    done = _python(_REPORT)

    assert done.stderr == ""
    assert done.stdout.splitlines() == ["0", "(0, 0)", "True"]


def _core_was_dumped(*, hardened: bool, cwd: Path) -> bool:
    with subprocess.Popen(
        [sys.executable, "-c", _CRASH.format(hardened=hardened)],
        cwd=cwd,
        stderr=subprocess.DEVNULL,
    ) as child:
        _, status, _ = os.wait4(child.pid, 0)
        child.returncode = status
    return os.WCOREDUMP(status)


def test_a_crash_leaves_no_core(tmp_path: Path) -> None:
    # Whether a process without the guard leaves one is up to the host, so it is not asserted.
    assert not _core_was_dumped(hardened=True, cwd=tmp_path)


def _environment_is_readable(*, hardened: bool) -> bool:
    """Ask as another process of the same user, without root's rights."""
    with subprocess.Popen(
        [sys.executable, "-c", _PEEK.format(hardened=hardened, nobody=NOBODY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        user = NOBODY if os.geteuid() == 0 else None
        done = subprocess.run(
            ["/bin/cat", f"/proc/{child.pid}/environ"],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            user=user,
            group=user,
        )
        assert child.stdin is not None
        child.stdin.close()
    return done.returncode == 0


def test_not_even_its_own_user_reads_its_environment() -> None:
    if not _environment_is_readable(hardened=False):
        pytest.skip("this host forbids it to everybody")

    assert not _environment_is_readable(hardened=True)
