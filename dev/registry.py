"""An OCI registry on this host, for as long as a test or a demo needs one.

The registry's process, pushing packages to it, and making Crossplane pull from it what it
believes to come from elsewhere. Everything in `dev` and the tests may import it.
"""

from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from dev import binaries, xpkg
from dev.process import Program, answers, free_port
from dev.supervisor import Supervisor
from dev.toolchain import Report
from dev.xpkg import PackageError

READY_TIMEOUT_S = 30.0
"""It listens at once; a loaded machine needs a moment."""

REQUEST_TIMEOUT_S = 10.0
"""One answer from memory."""

HOST = "localhost"
"""Crossplane takes plain HTTP for this name by itself; `spec.package` may not name it."""


class Registry:
    """A registry that keeps everything in memory, on a loopback port of its own.

    Args:
        folder: gets what the command line writes at home.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self._port}"

    def start(self, supervisor: Supervisor, *, report: Report) -> None:
        """Start it and return once it answers; it goes with the supervisor.

        Raises:
            ProcessError: it could not be built or did not start.
        """
        program = binaries.ensure(["registry"], report=report)["registry"]
        report("starting the registry")
        self._folder.mkdir(parents=True, exist_ok=True)
        argv = [str(program), "-port", str(self._port)]
        child = supervisor.start(Program(name="registry", argv=argv))
        child.await_ready(lambda: answers(f"http://{self.address}/v2/"), timeout_s=READY_TIMEOUT_S)

    def push(self, package: Path, reference: str) -> str:
        """Publish a package under the path and tag of a reference; answers its digest.

        Args:
            package: the built file.
            reference: fully qualified; its registry is replaced by this one.

        Raises:
            PackageError: the command failed.
            OSError: the registry does not answer.

        Idempotency: a second call finds everything there.
        """
        _, _, path = reference.partition("/")
        flags = ["-f", str(package.absolute()), f"{self.address}/{path}"]
        xpkg.crossplane("xpkg", "push", *flags, cwd=self._folder)
        return self.digest(path)

    def digest(self, path: str) -> str:
        """Answer the digest of a manifest, as `sha256:…`.

        Args:
            path: repository and tag.

        Raises:
            PackageError: there is no such tag.
            OSError: the registry does not answer.

        Source: OCI distribution specification, "Pulling manifests".
        """
        repository, _, tag = path.rpartition(":")
        connection = HTTPConnection(HOST, self._port, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request("HEAD", f"/v2/{repository}/manifests/{tag}")
            found = connection.getresponse().getheader("Docker-Content-Digest")
        finally:
            connection.close()
        if not found:
            message = f"cannot read digest of {path}: the registry has no such tag"
            raise PackageError(message)
        return found

    def image_config(self, prefix: str) -> dict[str, Any]:
        """Describe what makes Crossplane pull from here what is published under a prefix."""
        _, _, path = prefix.partition("/")
        return {
            "apiVersion": "pkg.crossplane.io/v1beta1",
            "kind": "ImageConfig",
            "metadata": {"name": "broker-dev-registry"},
            "spec": {
                "matchImages": [{"type": "Prefix", "prefix": f"{prefix}/"}],
                "rewriteImage": {"prefix": f"{self.address}/{path}/"},
            },
        }
