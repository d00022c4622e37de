"""Every fake of the identity context, by one name; each lives in a module of its own."""

from tests.fakes.enrolment import InMemoryEnrolmentStore, InMemoryNodeDeregistrar
from tests.fakes.tenancy import InMemoryTenancyRepository
from tests.fakes.tokens import InMemoryTokenIssuer

__all__ = [
    "InMemoryEnrolmentStore",
    "InMemoryNodeDeregistrar",
    "InMemoryTenancyRepository",
    "InMemoryTokenIssuer",
]
