"""What a call brings is shown by no error and no log: manifests hold users' data and tokens."""

from __future__ import annotations

from function.model.call import Request
from tests.unit.function import given


def test_a_request_shows_nothing_of_what_was_observed_composed_or_required() -> None:
    manifest = {"data": {"token": given.TOKEN}}
    by_name = {"secret": manifest}
    request = Request(
        xr=manifest,
        resources=by_name,
        whole=by_name,
        desired=by_name,
        required=by_name,
        step=manifest,
        preview=True,
    )

    assert given.TOKEN not in repr(request)
    assert "preview=True" in repr(request)
