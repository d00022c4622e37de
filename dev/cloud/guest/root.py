"""Builds a machine's private root out of read-only host programs and private folders.

Nothing of the host is writable inside: programs and libraries are read-only binds, everything a
boot may write is a folder of the machine or a tmpfs. Only ``guest.__main__`` uses this, in a mount
namespace of its own; the host never sees these mounts.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from dev.cloud.guest import linux

_PROGRAM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_PRIVATE_FOLDERS = ("etc", "home", "mnt", "opt", "root", "srv", "sys", "var/lib", "var/log")
_MOUNT_POINTS = ("dev", "proc", "run", "tmp")
_LOCAL_FOLDERS = ("bin", "sbin", "share")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
# Where the real root user would otherwise turn the host kernel's knobs.
_KERNEL_KNOBS = ("acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger")
# Copied, not bound: update-ca-certificates and write_files may change them.
_COPIED_ETC = (
    "ca-certificates.conf",
    "ld.so.cache",
    "nsswitch.conf",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs/ca-certificates.crt",
    "ssl/openssl.cnf",
)
# A boot writes a binary of a few MiB; a runaway one must not fill the developer's memory.
_TMPFS_OPTIONS = "mode=0755,size=64m"
_STAND_INS = Path(__file__).parent / "bin"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSpec:
    """What one private root is made from.

    Attributes:
        folder: The machine's own folder on the host; ``root`` and ``usr-local`` below it stay
            over reboots and are readable from outside.
        hostname: The machine's host name, already a legal one.
    """

    folder: Path
    hostname: str

    @property
    def root(self) -> Path:
        """Where the private root is put together."""
        return self.folder / "root"

    @property
    def local(self) -> Path:
        """What becomes ``/usr/local/{bin,sbin,share}``."""
        return self.folder / "usr-local"


def prepare(spec: RootSpec) -> None:
    """Lays out the persistent folders of a machine.

    Idempotency: an existing root keeps what an earlier boot wrote; only what is missing is added,
    and the stand-ins are renewed.
    """
    for name in (*_PRIVATE_FOLDERS, *_MOUNT_POINTS):
        (spec.root / name).mkdir(parents=True, exist_ok=True)
    (spec.root / "root").chmod(0o700)
    for name in _LOCAL_FOLDERS:
        (spec.local / name).mkdir(parents=True, exist_ok=True)
    (spec.local / "share" / "ca-certificates").mkdir(exist_ok=True)
    run = spec.root / "var" / "run"
    if not run.is_symlink():
        run.symlink_to("/run")
    for name in _PROGRAM_FOLDERS:
        _prepare_program_folder(Path("/") / name, spec.root / name)
    _write_etc(spec)
    _install_stand_ins(spec)


def _prepare_program_folder(source: Path, target: Path) -> None:
    if source.is_symlink():
        if not target.is_symlink():
            target.symlink_to(source.readlink())
    elif source.is_dir():
        target.mkdir(exist_ok=True)


def _write_etc(spec: RootSpec) -> None:
    etc = spec.root / "etc"
    if (etc / "passwd").exists():
        return
    for name in _COPIED_ETC:
        source = Path("/etc") / name
        if source.is_file():
            (etc / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, etc / name)
    (etc / "alternatives").mkdir(exist_ok=True)
    (etc / "hostname").write_text(f"{spec.hostname}\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost {spec.hostname}\n::1 localhost\n")
    (etc / "group").write_text("root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n")
    # Last, because its presence says that the folder is complete.
    (etc / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\n"
        "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )


def _install_stand_ins(spec: RootSpec) -> None:
    host_path = "/usr/sbin:/usr/bin:/sbin:/bin"
    for source in sorted(_STAND_INS.iterdir()):
        # A real systemctl is of no use: its systemd is not process 1 here.
        if source.name != "systemctl" and shutil.which(source.name, path=host_path):
            continue
        target = spec.local / "bin" / source.name
        shutil.copyfile(source, target)
        target.chmod(0o755)


def enter(spec: RootSpec) -> None:
    """Mounts the private root in a mount namespace of its own and moves this process into it.

    The process must be process 1 of a fresh pid namespace.

    Raises:
        OSError: naming the step that the kernel refused.
    """
    linux.unshare(linux.Clone.MOUNT)
    linux.mount("none", Path("/"), "", linux.Mount.REC | linux.Mount.PRIVATE)
    root = spec.root
    linux.bind(root, root)
    for name in _PROGRAM_FOLDERS:
        if (root / name).is_dir() and not (root / name).is_symlink():
            _bind_read_only(Path("/") / name, root / name)
    for name in _LOCAL_FOLDERS:
        linux.bind(spec.local / name, root / "usr" / "local" / name)
    if Path("/etc/alternatives").is_dir():
        _bind_read_only(Path("/etc/alternatives"), root / "etc" / "alternatives")
    for name in ("run", "tmp", "dev"):
        flags = linux.Mount.NOSUID | linux.Mount.NODEV
        linux.mount("tmpfs", root / name, "tmpfs", flags, _TMPFS_OPTIONS)
    (root / "tmp").chmod(0o1777)
    _fill_dev(root / "dev")
    # After the tmpfs mounts, because an interpreter may live below one of those folders.
    _offer_interpreter(root)
    flags = linux.Mount.NOSUID | linux.Mount.NODEV | linux.Mount.NOEXEC
    linux.mount("proc", root / "proc", "proc", flags)
    for name in _KERNEL_KNOBS:
        if (root / "proc" / name).exists():
            _bind_read_only(root / "proc" / name, root / "proc" / name)
    linux.enter_root(root)


def _bind_read_only(source: Path, target: Path) -> None:
    linux.bind(source, target)
    linux.make_read_only(target)


def _fill_dev(dev: Path) -> None:
    for name in _DEVICES:
        (dev / name).touch()
        linux.bind(Path("/dev") / name, dev / name)
    for name, target in _DEVICE_LINKS.items():
        (dev / name).symlink_to(target)


def _offer_interpreter(root: Path) -> None:
    """Makes ``python3`` inside the interpreter that runs the provider.

    The agent is a Python file, and a machine may have none in ``/usr/bin`` or one that is too old.
    """
    prefix = Path(sys.base_prefix)
    link = root / "usr" / "local" / "bin" / "python3"
    link.unlink(missing_ok=True)
    executable = Path(os.path.realpath(sys.executable))
    if prefix == Path("/usr"):
        return
    if prefix == Path("/usr/local"):
        # Its libraries are visible through /usr; its bin folder is covered by the private one.
        link.touch()
        linux.bind(executable, link)
        return
    target = root / prefix.relative_to("/")
    target.mkdir(parents=True, exist_ok=True)
    _bind_read_only(prefix, target)
    link.symlink_to(executable)
