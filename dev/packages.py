"""Builds Crossplane's packages with its own command, and checks what is in them.

The table of packages, what a release puts into them, and building them. The Makefile and
tests use it.

`python -m dev.packages` builds all of them into `dist/`.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from dev import xpkg
from dev.process import ProcessError
from dev.xpkg import Object, PackageError
from function.__version__ import __version__

ROOT = Path(__file__).parents[1]
PREFIX = "xpkg.example.org/plexsphere"
"""What the files in Git say in place of the registry and organisation of a release."""

VERSION = f"v{__version__}"

VERSION_ANNOTATION = "provisioning.plexsphere.com/version"
"""Tells releases of equal content apart: equal bytes under two tags are one revision."""

RUNTIME_USER = "2000"
"""As whom Crossplane runs a package's container, and our images say so themselves."""

_SEMVER = re.compile(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
_DEPENDENCY = re.compile(r"[a-z0-9.-]+(:\d+)?(/[a-z0-9._-]+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package and where its parts are.

    Args:
        name: of its metadata object and its repository.
        metadata: file of that object.
        parts: patterns of the files with everything else; each must find some.
        kinds: what it may hold beside the metadata object.
    """

    name: str
    metadata: str
    parts: tuple[str, ...]
    kinds: frozenset[str]

    def sources(self) -> list[Path]:
        """Answer the files of its parts.

        Raises:
            PackageError: a pattern finds nothing.
        """
        found: list[Path] = []
        for pattern in self.parts:
            files = sorted(ROOT.glob(pattern))
            if not files:
                message = f"cannot build package {self.name}: no file {pattern}"
                raise PackageError(message)
            found += files
        return found


FUNCTION = Package(
    name="function-provisioning-broker",
    metadata="package/crossplane.yaml",
    parts=("package/input/*.yaml",),
    kinds=frozenset({"CustomResourceDefinition"}),
)
CONFIGURATION = Package(
    name="configuration-provisioning-broker",
    metadata="crossplane.yaml",
    parts=("xrds/provisionedresource.yaml", "compositions/provisionedresource.yaml"),
    kinds=frozenset({"CompositeResourceDefinition", "Composition"}),
)
BLUEPRINTS = Package(
    name="configuration-provisioning-blueprints",
    metadata="crossplane-blueprints.yaml",
    parts=("xrds/blueprints/*.yaml", "compositions/blueprints/*.yaml"),
    kinds=frozenset({"CompositeResourceDefinition", "Composition"}),
)
PACKAGES = (FUNCTION, CONFIGURATION, BLUEPRINTS)
"""One line per package; a new one needs no more than its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is put into packages when they are built.

    Args:
        version: semantic, with a `v`.
        prefix: registry and organisation, without a slash at the end.

    Raises:
        PackageError: one of them is malformed.
    """

    version: str = VERSION
    prefix: str = PREFIX

    def __post_init__(self) -> None:
        if not _SEMVER.fullmatch(self.version):
            message = f"cannot release {self.version!r}: not of the form v1.2.3"
            raise PackageError(message)
        if not _DEPENDENCY.fullmatch(self.prefix):
            message = f"cannot release to {self.prefix!r}: not of the form registry/organisation"
            raise PackageError(message)

    def reference(self, package: Package) -> str:
        """Answer where the package is published."""
        return f"{self.prefix}/{package.name}:{self.version}"

    def installed_name(self, package: Package) -> str:
        """Answer what dependency resolution calls the installed package."""
        return installed_name(f"{self.prefix}/{package.name}")

    def applied(self, text: str) -> str:
        """Replace what stands in Git for the registry and for names derived from it."""
        default = Release()
        for package in PACKAGES:
            ours = re.escape(default.installed_name(package))
            text = re.sub(rf"\b{ours}\b", self.installed_name(package), text)
        return text.replace(f"{default.prefix}/", f"{self.prefix}/")


def installed_name(repository: str) -> str:
    """Name a package as Crossplane's dependency resolution does.

    Source: crossplane-runtime, `xpkg.ToDNSLabel` of the repository without its registry.
    """
    _, _, path = repository.partition("/")
    return re.sub(r"[^a-z0-9-]", "", re.sub(r"[./:]", "-", path)[:63]).strip("-")


def objects(package: Package, release: Release) -> list[Object]:
    """Answer what a package of that release must hold, the metadata object first."""
    listed = [_metadata(package, release)]
    for source in package.sources():
        listed += filter(None, yaml.safe_load_all(release.applied(_text(source))))
    return listed


def build(package: Package, release: Release, target: Path, *, runtime: Path | None = None) -> Path:
    """Build a package and check it; answers `target`.

    Args:
        package: of the table, or another.
        release: what is put into it.
        target: the file; replaced when it exists.
        runtime: archive of an image as `docker save` writes it, to embed; `None` for a package
            whose runtime is elsewhere.

    Raises:
        PackageError: it could not be built, or holds something else than it should.

    Idempotency: equal sources give equal bytes.
    """
    wanted = objects(package, release)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="package-") as folder:
        # The command takes every YAML file below the folder it is given.
        stage(package, release, Path(folder))
        built = Path(folder) / "built.xpkg"
        embed = [f"--embed-runtime-image-tarball={runtime.absolute()}"] if runtime else []
        flags = [f"--package-root={folder}", f"--package-file={built}"]
        xpkg.crossplane("xpkg", "build", *flags, *embed, cwd=Path(folder))
        check(package, wanted, xpkg.contents(built))
        if runtime:
            check_runtime(package, xpkg.runtime_config(built))
        shutil.copyfile(built, target)
    return target


def stage(package: Package, release: Release, folder: Path) -> None:
    """Lay a package's parts out in an empty folder, as they are built."""
    _write(folder / "crossplane.yaml", json.dumps(_metadata(package, release), indent=2))
    for source in package.sources():
        _write(folder / source.relative_to(ROOT), release.applied(_text(source)))


def check(package: Package, wanted: Sequence[Object], found: Sequence[Object]) -> None:
    """Insist that a package holds its objects, each once, and nothing else.

    Raises:
        PackageError: names what is missing, foreign or of a kind it must not hold.
    """
    for stranger in (body for body in found[1:] if body["kind"] not in package.kinds):
        message = f"cannot accept package {package.name}: it holds {_title(stranger)}"
        raise PackageError(message)
    if list(found[:1]) != list(wanted[:1]):
        message = f"cannot accept package {package.name}: it does not begin with its metadata"
        raise PackageError(message)
    # The command gives every CRD a status.
    plain = [{key: body[key] for key in body if key != "status"} for body in found]
    if sorted(map(_canonical, wanted)) != sorted(map(_canonical, plain)):
        titles = ", ".join(sorted(map(_title, found)))
        message = f"cannot accept package {package.name}: it differs from its sources: {titles}"
        raise PackageError(message)


def check_runtime(package: Package, config: Object) -> None:
    """Insist that an embedded image starts our command as the user that clusters expect.

    Raises:
        PackageError: it has another user, or nothing to start.
    """
    user, entrypoint = config.get("User"), config.get("Entrypoint")
    if str(user).partition(":")[0] != RUNTIME_USER or not entrypoint:
        detail = f"it runs {entrypoint} as {user!r}, not as {RUNTIME_USER}"
        message = f"cannot accept runtime of package {package.name}: {detail}"
        raise PackageError(message)


def _metadata(package: Package, release: Release) -> Object:
    """Answer a metadata object with the release's version, in it and in what it needs of us."""
    body: Object = yaml.safe_load(release.applied(_text(ROOT / package.metadata)))
    body["metadata"].setdefault("annotations", {})[VERSION_ANNOTATION] = release.version
    ours = {f"{release.prefix}/{each.name}" for each in PACKAGES}
    for dependency in body["spec"].get("dependsOn", []):
        if dependency["package"] in ours:
            dependency["version"] = f">={release.version}"
    return body


def _text(source: Path) -> str:
    return source.read_text(encoding="utf-8")


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _canonical(body: Object) -> str:
    return json.dumps(body, sort_keys=True)


def _title(body: Object) -> str:
    return f"{body['kind']} {body['metadata']['name']}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Build every package and say where each is published."""
    parser = argparse.ArgumentParser(prog="python -m dev.packages", description=main.__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--version", default=VERSION, help="default: %(default)s")
    parser.add_argument("--prefix", default=PREFIX, help="default: %(default)s")
    parser.add_argument("--runtime", type=Path, help="image archive to embed in the Function")
    given = parser.parse_args(arguments)
    try:
        release = Release(version=given.version, prefix=given.prefix)
        for package in PACKAGES:
            runtime = given.runtime if package is FUNCTION else None
            target = given.output / f"{package.name}-{release.version}.xpkg"
            build(package, release, target, runtime=runtime)
            print(f"{target}  push to {release.reference(package)}")
    except (PackageError, ProcessError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
