"""A reviewer that knows whom a test tells it of."""

from __future__ import annotations

from pydantic import SecretStr

from reconciler.ports.operators import ReviewResult, ReviewUnavailableError, ReviewVerdict


class InMemoryReviewer:
    """Implements `ports.operators.Reviewer`.

    Attributes:
        asked: Every verb and path, in order.
        available: Whether it can be asked.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.available = True
        self._users: dict[str, str] = {}
        self._rights: set[tuple[str, str, str]] = set()

    def know(self, token: str, user: str) -> None:
        """Know who holds a token."""
        self._users[token] = user

    def grant(self, user: str, verb: str, path: str) -> None:
        """Give a right; a path may end in `*`, as in a ClusterRole."""
        self._rights.add((user, verb, path))

    async def review(self, credential: SecretStr, *, verb: str, path: str) -> ReviewResult:
        """Judge one request."""
        if not self.available:
            raise ReviewUnavailableError
        self.asked.append((verb, path))
        user = self._users.get(credential.get_secret_value())
        if user is None:
            return ReviewResult(verdict=ReviewVerdict.UNAUTHENTICATED)
        allowed = any(
            (user, verb) == (whose, what) and _covers(where, path)
            for whose, what, where in self._rights
        )
        return ReviewResult(
            verdict=ReviewVerdict.ALLOWED if allowed else ReviewVerdict.FORBIDDEN, user=user
        )


def _covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
