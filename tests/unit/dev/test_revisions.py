"""Names that core derives too, and where a registry of this host stands in."""

from __future__ import annotations

from pathlib import Path

from dev import revisions
from dev.registry import Registry

DIGEST = "sha256:0123456789abcdef"


def test_a_revision_is_named_after_its_function_and_manifest() -> None:
    assert revisions.revision_name("acme-function-a", DIGEST) == "acme-function-a-0123456789ab"


def test_a_long_functions_name_is_cut_in_its_revisions() -> None:
    assert revisions.revision_name("f" * 60, DIGEST) == f"{'f' * 50}-0123456789ab"


def test_a_prefix_is_pulled_from_the_registry_of_this_host(tmp_path: Path) -> None:
    registry = Registry(tmp_path)

    config = registry.image_config("xpkg.example.org/acme")

    assert config["spec"] == {
        "matchImages": [{"type": "Prefix", "prefix": "xpkg.example.org/acme/"}],
        "rewriteImage": {"prefix": f"{registry.address}/acme/"},
    }
    assert registry.address.startswith("localhost:")
