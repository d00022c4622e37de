"""The few Linux calls that a private root needs and Python 3.11 does not offer.

Thin and typed: one function per call, an ``OSError`` naming the step for every refusal. No policy
lives here (``root`` and ``__main__`` decide what to mount and to unshare).
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from enum import IntFlag
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 0x1
_MOUNT_ATTR_NOSUID = 0x2
# The number is the same on every architecture: it was added after the tables were unified.
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

# What a container engine leaves to root by default, less what reaches devices and the network:
# chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, sys_chroot.
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 18})
_LAST_CAPABILITY = 63


class Clone(IntFlag):
    """Namespaces that ``unshare`` can detach from; the network is left out on purpose."""

    MOUNT = 0x00020000
    UTS = 0x04000000
    IPC = 0x08000000
    USER = 0x10000000
    PID = 0x20000000


class Mount(IntFlag):
    """Flags of ``mount(2)`` in use here."""

    NONE = 0
    NOSUID = 2
    NODEV = 4
    NOEXEC = 8
    BIND = 4096
    REC = 16384
    PRIVATE = 1 << 18


def _check(result: int, step: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {step}: {os.strerror(number)}")


def unshare(namespaces: Clone) -> None:
    """Detaches this process from ``namespaces``.

    Raises:
        OSError: the kernel refuses, for lack of privilege or of namespaces.
    """
    _check(_LIBC.unshare(ctypes.c_int(int(namespaces))), f"unshare {namespaces!r}")


def mount(source: str, target: Path, kind: str, flags: Mount, options: str = "") -> None:
    """Mounts ``source`` of filesystem ``kind`` at ``target``.

    Raises:
        OSError: naming the target, when the kernel refuses.
    """
    result = _LIBC.mount(
        source.encode(),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(int(flags)),
        options.encode(),
    )
    _check(result, f"mount {kind or source} at {target}")


def bind(source: Path, target: Path) -> None:
    """Shows ``source`` and everything mounted below it at ``target``."""
    mount(str(source), target, "", Mount.BIND | Mount.REC)


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def make_read_only(target: Path) -> None:
    """Makes the mount at ``target``, and every mount below it, read-only and without setuid.

    Raises:
        OSError: the kernel refuses, or is older than 5.12 and does not know the call.
    """
    attributes = _MountAttr(_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, 0, 0, 0)
    result = _LIBC.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _check(result, f"make {target} read-only")


def enter_root(new_root: Path) -> None:
    """Makes ``new_root`` (a mount point) the root and lets go of the old one.

    Raises:
        OSError: the kernel refuses, or the machine's architecture is not known here.
    """
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        message = f"cannot change the root: architecture {platform.machine()!r} is not known"
        raise OSError(message)
    os.chdir(new_root)
    _check(_LIBC.syscall(ctypes.c_long(number), b".", b"."), "change the root")
    _check(_LIBC.umount2(b".", ctypes.c_int(_MNT_DETACH)), "let go of the old root")
    os.chdir("/")


def die_with_parent() -> None:
    """Asks for SIGKILL when the parent process ends."""
    _check(_LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "follow the parent's end")


def drop_privileges_of_children() -> None:
    """Takes from every program started later what could reach outside the private root.

    Needed where the machine belongs to the real root user: a user namespace would do it otherwise.
    """
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new privileges")
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT_CAPABILITIES:
            # Refused for numbers that this kernel does not have, and those nobody holds.
            _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
