"""Becomes another program that dies with the process that asked for it.

Run as a script by `dev.process`, never imported by anything else: it must start in
milliseconds, so it uses the standard library only and reads plain numbers.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal this process gets when its parent's thread ends."""

KEEP = -1
"""Stands for "leave the user or group as it is"."""

PARENT_GONE = 113
"""Exit status when the parent died before the kernel was told to watch it."""


def main(argv: list[str]) -> None:
    """Drop to a user, tie this process to its parent, and become the program.

    The order matters: the kernel forgets the death signal when a process changes its
    user. The parent is compared afterwards, because it may have died before the call.

    Args:
        argv: the parent's pid, the death signal, uid and gid (`KEEP` for each that
            stays), then the program's path and arguments.
    """
    parent, death_signal, uid, gid = (int(word) for word in argv[:4])
    if gid != KEEP:
        os.setgroups([])
        os.setgid(gid)
    if uid != KEEP:
        os.setuid(uid)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        sys.exit(f"cannot set death signal: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit(PARENT_GONE)
    program = argv[4:]
    os.execv(program[0], program)  # noqa: S606 - becoming that program is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
