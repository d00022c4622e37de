"""The keys of the work queue: one per object, each with its lane.

The closed set of keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """A record in a management cluster."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateKey:
    """An aggregate whose record may be gone, by its id's canonical text.

    Attributes:
        namespace: Whose turn it takes; empty when unknown. Not part of its identity.
    """

    id: str
    namespace: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiblingsKey:
    """The siblings of an aggregate that is Deleted, by its id's canonical text.

    Attributes:
        namespace: Whose turn it takes; empty when unknown. Not part of its identity.
    """

    id: str
    namespace: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectKey:
    """A Project object."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialKey:
    """A credential in use in a namespace, or still held there."""

    namespace: str
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceKey:
    """A namespace whose count of records may not be the stored one."""

    namespace: str


Key = RecordKey | AggregateKey | SiblingsKey | ProjectKey | CredentialKey | NamespaceKey


def lane_of(key: Key) -> str:
    """Return whose turn it is: the Project's namespace, or what stands for a Project."""
    match key:
        case RecordKey() | CredentialKey() | NamespaceKey():
            return key.namespace
        case AggregateKey() | SiblingsKey():
            return key.namespace or key.id
        case ProjectKey():
            return f"project/{key.name}"
