"""Takes single files, such as CRDs, out of pinned Go modules that are never built.

The download, the check against `dev/tools/schemas.sum`, and the cache of archives. Tests
and `dev` may import it.

`python -m dev.schemas` fetches all of them.

To pin another module, add its line to `schemas.sum` in the form of a `go.sum`: the `Sum`
that `go mod download -json MODULE@VERSION` prints.
"""

import json
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from dev import arguments
from dev.process import ProcessError
from dev.toolchain import (
    FETCH_TIMEOUT_S,
    TOOLS,
    cache_dir,
    go_environment,
    go_program,
    locked,
    staged,
)

SUMS = TOOLS / "schemas.sum"

FILE_MAX_BYTES = 16 * 2**20
"""An object of etcd is below 2 MB, and the largest bundle of CRDs a few times that."""

_ARCHIVE = "module.zip"


def module_file(module: str, version: str, path: str) -> bytes:
    """Return one file of a pinned module.

    Args:
        module: module path, for example `github.com/external-secrets/external-secrets`.
        version: the pinned version, for example `v1.3.2`.
        path: of the file, below the module's root.

    Raises:
        KeyError: the module has no pinned sum, or no such file.
        ProcessError: it cannot be downloaded, is not the one that was pinned, or the file
            is larger than `FILE_MAX_BYTES`.

    Idempotency: downloaded once, then read from the cache.
    """
    pinned = pinned_sums(SUMS.read_text(encoding="utf-8"))[f"{module} {version}"]
    with zipfile.ZipFile(_archive(module, version, pinned)) as archive:
        member = archive.getinfo(f"{module}@{version}/{path}")
        if member.file_size > FILE_MAX_BYTES:
            message = f"cannot read {path} of {module}: larger than {FILE_MAX_BYTES} bytes"
            raise ProcessError(message)
        return archive.read(member)


def fetch() -> None:
    """Download every pinned module that is not there yet.

    Raises:
        ProcessError: one cannot be downloaded, or is not the one that was pinned.

    Idempotency: what is in the cache is not downloaded again.
    """
    for name, pinned in pinned_sums(SUMS.read_text(encoding="utf-8")).items():
        module, version = name.split()
        _archive(module, version, pinned)


def pinned_sums(text: str) -> Mapping[str, str]:
    """Read a file of sums: from `module version` to `h1:…`.

    Raises:
        ValueError: a line has not three parts.

    Source: Go modules reference, "go.sum files".
    """
    sums = {}
    for line in text.splitlines():
        module, version, sum_ = line.split()
        sums[f"{module} {version}"] = sum_
    return sums


def _archive(module: str, version: str, pinned: str) -> Path:
    name = f"{module}@{version}".replace("/", "_")
    target = cache_dir() / "modules" / name
    with locked(f"module-{name}"):
        if not (target / _ARCHIVE).exists():
            with staged(target) as folder:
                _download(f"{module}@{version}", pinned, folder)
    return target / _ARCHIVE


def _download(name: str, pinned: str, folder: Path) -> None:
    # A module cache of its own, which goes away: Go unpacks what it downloads, and an
    # unpacked provider takes gigabytes that nobody reads.
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        environment = go_environment()
        answer = subprocess.run(
            [go_program(print), "mod", "download", "-json", name],
            cwd=cache,
            env={
                **environment,
                "GOFLAGS": f"{environment['GOFLAGS']} -modcacherw",
                "GOMODCACHE": cache,
                "GOSUMDB": "off",  # the pinned sum is what it must be
            },
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
        )
        if answer.returncode != 0:
            message = f"cannot download {name}: {answer.stderr.strip() or answer.stdout.strip()}"
            raise ProcessError(message)
        found = json.loads(answer.stdout)
        if found["Sum"] != pinned:
            message = f"cannot take {name}: its sum is {found['Sum']}, not the pinned {pinned}"
            raise ProcessError(message)
        Path(found["Zip"]).rename(folder / _ARCHIVE)


if __name__ == "__main__":
    arguments.none("dev.schemas", __doc__)
    fetch()
