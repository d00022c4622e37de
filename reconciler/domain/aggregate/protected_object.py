"""An object that is protected from deletion until its node is out.

The value. May be imported by anybody in the reconciler. Source: design §2 "Deletion".
"""

from __future__ import annotations

from dataclasses import dataclass

from function.contract.record import SubstrateReference


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedObject:
    """One object that must outlive the node; known before it may be composed.

    Attributes:
        reference: apiVersion, kind and name, in the aggregate's namespace.
        uid: Of a substrate, while its node is in the mesh: the one that the node came from
            (`sameness`). Of one that is released: the one that was. Else None.
        seen: It was there once, in any phase.
        released: A teardown let it go; before that, nobody but break-glass may delete it.
        sibling: It is not the substrate but something beside it, a network or a volume,
            which may outlive the aggregate.
    """

    reference: SubstrateReference
    uid: str | None = None
    seen: bool = False
    released: bool = False
    sibling: bool = False
