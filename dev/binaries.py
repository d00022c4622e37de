"""Builds the control plane's programs from pinned Go modules, once.

Which programs exist, their build flags, the cache, and the files that Crossplane ships
beside its program. Everything in `dev` and the end-to-end tests may import it.

A build is found by the hash of what went into it, appears by an atomic rename, and is
made by one process at a time. An interrupted one goes on where it was: Go keeps the
packages it compiled. `python -m dev.binaries` builds all of them.
"""

import hashlib
import itertools
import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dev import arguments
from dev.process import Child, ProcessError, Program, log_tail
from dev.toolchain import (
    TOOLS,
    Report,
    cache_dir,
    go_environment,
    go_program,
    locked,
    staged,
)

BUILD_TIMEOUT_S = 3600
"""Four minutes for the slowest on two cores; one core and a slow line need far more."""

TICK_S = 15
"""How often a build that takes long says so."""

CORE_MODULE = "github.com/crossplane/crossplane/v2"
CORE_VERSION = "v2.3.4"
KUBERNETES_VERSION = "v1.34.4"

BIND_TO_CHOSEN_PORT = (
    "sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=127.0.0.1:0"
)
"""Crossplane's rbac manager has no flag for its metrics port: two control planes on one
host would fight for 8080, and with any function's metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """One program.

    Args:
        module: folder under `dev/tools` that pins it.
        package: its main package.
        stamps: string variables the linker sets, as `path.name=value`.
    """

    module: str
    package: str
    stamps: tuple[str, ...] = ()


_KUBERNETES_STAMPS = (
    f"k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
    "k8s.io/component-base/version.gitMajor=1",
    "k8s.io/component-base/version.gitMinor=34",
)

BINARIES: Mapping[str, Binary] = {
    "etcd": Binary(module="etcd", package="go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Binary(
        module="kubernetes",
        package="k8s.io/kubernetes/cmd/kube-apiserver",
        stamps=_KUBERNETES_STAMPS,
    ),
    "kube-controller-manager": Binary(
        module="kubernetes",
        package="k8s.io/kubernetes/cmd/kube-controller-manager",
        stamps=_KUBERNETES_STAMPS,
    ),
    "crossplane": Binary(
        module="crossplane",
        package=f"{CORE_MODULE}/cmd/crossplane",
        stamps=(
            f"github.com/crossplane/crossplane-runtime/v2/pkg/version.version={CORE_VERSION}",
            BIND_TO_CHOSEN_PORT,
        ),
    ),
    "crossplane-cli": Binary(
        module="crossplane-cli", package="github.com/crossplane/cli/v2/cmd/crossplane"
    ),
    "registry": Binary(
        module="registry", package="github.com/google/go-containerregistry/cmd/registry"
    ),
    # The runbooks' commands are run as they stand.
    "kubectl": Binary(
        module="kubectl",
        package="k8s.io/kubernetes/cmd/kubectl",
        stamps=_KUBERNETES_STAMPS,
    ),
    "nats-server": Binary(module="nats", package="github.com/nats-io/nats-server/v2"),
    "kstatus": Binary(module="kstatus", package="."),
}

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "crossplane")
"""What a running control plane is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreManifests:
    """Files that Crossplane's own module ships.

    Args:
        crds: folder that `crossplane core init` reads.
        webhook_configurations: the other folder that it reads.
        chart_templates: folder of its Helm chart's templates.
    """

    crds: Path
    webhook_configurations: Path
    chart_templates: Path


def linker_flags(binary: Binary) -> str:
    """Build flags of one program: no symbol tables, and its stamps."""
    return " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in binary.stamps)])


def cache_key(binary: Binary, *, module_dir: Path, machine: str) -> str:
    """Name what a build is made of: 16 hexadecimal digits.

    Args:
        binary: what is built.
        module_dir: holds its `go.mod` and `go.sum`, and sources where they are ours.
        machine: processor architecture.
    """
    digest = hashlib.sha256()
    parts = [
        (module_dir / "go.mod").read_bytes(),
        (module_dir / "go.sum").read_bytes(),
        go_environment()["GOFLAGS"].encode(),
        linker_flags(binary).encode(),
        binary.package.encode(),
        machine.encode(),
        *(path.read_bytes() for path in sorted(module_dir.glob("*.go"))),
    ]
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def cached_path(name: str) -> Path:
    """Answer where a program is, or will be once built."""
    binary = BINARIES[name]
    key = cache_key(binary, module_dir=TOOLS / binary.module, machine=platform.machine())
    return cache_dir() / "bin" / f"{name}-{key}" / name


def ensure(names: Iterable[str], *, report: Report) -> Mapping[str, Path]:
    """Answer the path of each named program, building what is missing.

    Downloads of later builds run while an earlier one compiles; compiling itself uses
    all processors, so builds follow one another.

    Args:
        names: keys of `BINARIES`.
        report: gets a line at start and end of a build and every `TICK_S` between.

    Raises:
        KeyError: an unknown name.
        ProcessError: a build failed; quotes the compiler.

    Idempotency: what is cached is only looked up.
    """
    paths = {name: cached_path(name) for name in names}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        go = go_program(report)
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="download") as ahead:
            modules = dict.fromkeys(BINARIES[name].module for name in missing)
            for module in itertools.islice(modules, 1, None):
                ahead.submit(_download, go, TOOLS / module)
            for name in missing:
                _build(go, name, paths[name], report)
    return paths


def core_manifests(*, report: Report) -> CoreManifests:
    """Answer Crossplane's CRDs, webhook configurations and chart templates.

    Raises:
        ProcessError: the module cannot be downloaded.

    Idempotency: copied into the cache once, then only looked up.
    """
    target = cache_dir() / "manifests" / f"crossplane-{CORE_VERSION}"
    with locked("manifests"):
        if not target.exists():
            source = _module_dir(go_program(report))
            with staged(target) as folder:
                for part in ("crds", "webhookconfigurations", "charts"):
                    # Files of Go's module cache are read-only; copies must be removable.
                    shutil.copytree(
                        source / "cluster" / part, folder / part, copy_function=shutil.copyfile
                    )
                    for copied in (folder / part, *(folder / part).rglob("*/")):
                        copied.chmod(0o755)
    return CoreManifests(
        crds=target / "crds",
        webhook_configurations=target / "webhookconfigurations",
        chart_templates=target / "charts" / "crossplane" / "templates",
    )


def console() -> Report:
    """Report to stdout: lines in place on a terminal, one below the other elsewhere."""

    def report(line: str) -> None:
        passing = sys.stdout.isatty() and line.endswith("…")
        print(f"\r\x1b[K{line}" if sys.stdout.isatty() else line, end="" if passing else "\n")
        sys.stdout.flush()

    return report


def _download(go: Path, module_dir: Path) -> None:
    # Its failure shows in the build that needs the files, with the reason.
    subprocess.run(
        [go, "list", "-deps", "tool"],
        cwd=module_dir,
        env=go_environment(),
        capture_output=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )


def _build(go: Path, name: str, path: Path, report: Report) -> None:
    with locked(name):
        if path.exists():
            return
        report(f"{name}: building…")
        started = time.monotonic()
        with staged(path.parent) as folder:
            _compile(go, name, folder / name, report)
        report(f"{name}: built in {time.monotonic() - started:.0f} s")


def _compile(go: Path, name: str, output: Path, report: Report) -> None:
    binary = BINARIES[name]
    program = Program(
        name=f"build-{name}",
        argv=[
            *(str(go), "build", "-ldflags", linker_flags(binary)),
            *("-o", str(output), binary.package),
        ],
        env=go_environment(),
        cwd=TOOLS / binary.module,
    )
    log = cache_dir() / "logs" / f"{program.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    child = Child(program, log)
    try:
        for elapsed_s in range(TICK_S, BUILD_TIMEOUT_S, TICK_S):
            if child.ended_within(TICK_S):
                break
            report(f"{name}: building, {elapsed_s} s…")
    finally:
        child.kill()
    if child.status != 0:
        message = f"cannot build {name}: status {child.status}; {log_tail(log)}"
        raise ProcessError(message)


def _module_dir(go: Path) -> Path:
    answer = subprocess.run(
        [go, "mod", "download", "-json", f"{CORE_MODULE}@{CORE_VERSION}"],
        cwd=TOOLS / "crossplane",
        env=go_environment(),
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if answer.returncode != 0:
        message = f"cannot download {CORE_MODULE}: {answer.stderr.strip()}"
        raise ProcessError(message)
    return Path(json.loads(answer.stdout)["Dir"])


if __name__ == "__main__":
    arguments.none("dev.binaries", __doc__)
    ensure(BINARIES, report=console())
    core_manifests(report=console())
