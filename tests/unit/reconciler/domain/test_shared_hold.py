"""Who needs what is held for a credential."""

from __future__ import annotations

import pytest

from reconciler.domain.protection import shared_hold
from reconciler.domain.protection.shared_hold import Use

SECRET = shared_hold.secret("here", "s", "acme")
CONFIG = shared_hold.provider_config(
    {"apiVersion": "p/v1", "metadata": {"namespace": "here", "name": "p"}}, "acme"
)


def _use(credential: str = "acme", *, enrolled: bool = False, secret: str = "s") -> Use:  # noqa: S107
    return Use(credential=credential, enrolled=enrolled, secrets=frozenset({secret}))


@pytest.mark.parametrize(
    ("uses", "secret", "config"),
    [
        ([], False, False),
        ([_use()], True, True),
        ([_use(enrolled=True)], True, False),
        ([_use("twin")], True, False),
        ([_use("other", secret="t")], False, False),
        ([_use("other", secret="t"), _use()], True, True),
    ],
    ids=["nobody", "a node", "an enrolled one", "a twin", "a stranger", "one of two"],
)
def test_it_is_needed_by_who_uses_it(uses: list[Use], secret: bool, config: bool) -> None:
    assert shared_hold.needed(SECRET, uses) == secret
    assert shared_hold.needed(CONFIG, uses) == config


def test_both_are_named_as_manifests_do() -> None:
    assert SECRET.manifest == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "here"},
    }
    assert CONFIG.manifest["kind"] == "ProviderConfig"
