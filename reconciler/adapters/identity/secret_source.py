"""Tokens, node keys and signing keys from the operating system's randomness.

Minting.
"""

from __future__ import annotations

import secrets

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from function.contract.secrets import TokenPlaintext
from reconciler.domain.aggregate import ids
from reconciler.domain.identity import node_key, token
from reconciler.ports.registration import SigningKey


class SystemSecretSource:
    """Implements `ports.registration.SecretSource`.

    Args:
        env: The environment segment of tokens, lower-case letters.
    """

    def __init__(self, *, env: str) -> None:
        self._env = env

    @property
    def env(self) -> str:
        """The environment segment of the tokens it mints."""
        return self._env

    def token(self, project_id: ids.ProjectID) -> TokenPlaintext:
        """Mint the text of a bootstrap token: 160 random bits."""
        entropy = secrets.token_bytes(token.ENTROPY_BYTES)
        return token.compose(env=self._env, project_id=project_id, entropy=entropy)

    def node_secret(self) -> bytes:
        """Mint a node secret key of 32 bytes."""
        return secrets.token_bytes(node_key.NSK_BYTES)

    def signing_key(self) -> SigningKey:
        """Mint a Domain's Ed25519 pair as raw bytes."""
        key = Ed25519PrivateKey.generate()
        return SigningKey(
            private=key.private_bytes_raw(), public=key.public_key().public_bytes_raw()
        )
