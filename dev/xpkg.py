"""Crossplane's package command, and what is in the files that it builds.

Running the command line, and reading an `.xpkg` file. Everything in `dev` and the tests may
import it.
"""

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import yaml

from dev import binaries

BUILD_TIMEOUT_S = 60.0
"""A build takes a tenth of a second."""


PACKAGE_BYTES_MAX = 64 * 1024 * 1024
"""Of one layer's `package.yaml`; ours have some ten kilobytes, Crossplane's limit is 200 MB."""

_BASE_LABEL = "io.crossplane.xpkg:"

Object = dict[str, Any]


class PackageError(RuntimeError):
    """A package could not be built, or is not what it should be."""


def crossplane(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout_s: float = BUILD_TIMEOUT_S,
) -> str:
    """Run Crossplane's command line; answers what it printed.

    Args:
        arguments: its own.
        cwd: also its home, so that nothing of the user's is read or written.
        env: for this run only.
        timeout_s: of the whole run.

    Raises:
        PackageError: it failed or took too long; quotes its words.
    """
    task = f"run crossplane {' '.join(arguments[:2])}"
    program = binaries.ensure(["crossplane-cli"], report=_to_stderr)["crossplane-cli"]
    try:
        done = subprocess.run(
            [str(program), *arguments],
            cwd=cwd,
            env={"PATH": os.defpath, "HOME": str(cwd), **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"cannot {task}: not done after {timeout_s:g} s"
        raise PackageError(message) from error
    if done.returncode != 0:
        message = f"cannot {task}: {done.stderr.strip()}"
        raise PackageError(message)
    return done.stdout


def contents(package: Path) -> list[Object]:
    """Read the objects of a built package, in their order.

    Raises:
        PackageError: it is not a package: one layer marked `base` with one `package.yaml`.

    Source: Crossplane, xpkg specification.
    """
    with _opened(package) as archive:
        image = _image(archive)
        labels: Mapping[str, str] = _config(archive, image).get("Labels") or {}
        digests = [name.removeprefix(_BASE_LABEL) for name in labels if labels[name] == "base"]
        names = [f"{digest.removeprefix('sha256:')}.tar.gz" for digest in digests]
        if len(names) != 1 or names[0] not in image["Layers"]:
            message = f"cannot read package {package.name}: not one layer is marked base"
            raise PackageError(message)
        content = _member(archive, names[0]).read(PACKAGE_BYTES_MAX)
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digests[0]:
        message = f"cannot read package {package.name}: its base layer has another digest"
        raise PackageError(message)
    return _stream(package.name, content)


def runtime_config(package: Path) -> Object:
    """Answer how the image in a package, or in an image archive, is started.

    Returns:
        `User`, `Entrypoint` and more; without them when no runtime is embedded.

    Raises:
        PackageError: it is not the archive of one image.

    Source: OCI image specification, "Image Configuration".
    """
    with _opened(package) as archive:
        return _config(archive, _image(archive))


@contextlib.contextmanager
def _opened(package: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(package) as archive:
            yield archive
    except tarfile.TarError as error:
        message = f"cannot read package {package.name}: it is not an archive"
        raise PackageError(message) from error


def _image(archive: tarfile.TarFile) -> Object:
    images: list[Object] = json.load(_member(archive, "manifest.json"))
    if len(images) != 1:
        message = f"cannot read package: it holds {len(images)} images"
        raise PackageError(message)
    return images[0]


def _config(archive: tarfile.TarFile, image: Object) -> Object:
    return dict(json.load(_member(archive, image["Config"])).get("config") or {})


def _stream(name: str, layer: bytes) -> list[Object]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        members = [member.name for member in archive]
        if members != ["package.yaml"]:
            message = f"cannot read package {name}: its base layer holds {', '.join(members)}"
            raise PackageError(message)
        text = _member(archive, "package.yaml").read(PACKAGE_BYTES_MAX)
    return [body for body in yaml.safe_load_all(text) if body]


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        file = archive.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        message = f"cannot read package: it has no file {name}"
        raise PackageError(message)
    return file


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)
