"""The peers of a node, in the form in which nodes are told of them.

That form, written and read. One text and not one object each, because a Project may have
ten thousand nodes, the agent takes the whole list or nothing, and the event loop would
stand still while they are made. The store writes the text; whoever wants to look into it
reads it. Source: contracts §1.3, §1.6.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from reconciler.domain.aggregate import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A live node of a Project, as its peers see it."""

    node_id: ids.NodeID
    mesh_ip: str
    public_key: bytes


@dataclass(frozen=True, slots=True)
class Peers:
    """Every other live node of a node's Project, in the order of their ids.

    Attributes:
        json: A JSON array of objects with node_id, mesh_ip and public_key (base64).
    """

    json: str = "[]"

    @classmethod
    def of(cls, peers: Iterable[Peer]) -> Self:
        """Write peers, in the order in which they are given."""
        rows = [
            {
                "node_id": str(peer.node_id),
                "mesh_ip": peer.mesh_ip,
                "public_key": base64.b64encode(peer.public_key).decode(),
            }
            for peer in peers
        ]
        return cls(json.dumps(rows, separators=(",", ":")))

    def read(self) -> tuple[Peer, ...]:
        """Return the peers one by one: for a few of them, or off the event loop."""
        return tuple(
            Peer(
                node_id=ids.NodeID(UUID(row["node_id"])),
                mesh_ip=row["mesh_ip"],
                public_key=base64.b64decode(row["public_key"]),
            )
            for row in json.loads(self.json)
        )
