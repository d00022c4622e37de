"""A Domain's network: the API server takes what the model takes."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from function.contract import names
from function.contract.catalog.tenancy import DomainSpec
from tests.e2e.deploy.identity import Answer
from tests.e2e.deploy.manifests import changed, example
from tests.e2e.deploy.place import Place

pytestmark = pytest.mark.e2e


def offered(place: Place, cidr: str) -> Answer:
    item = changed(example("Domain"), "spec.meshCIDR", cidr)
    return place.admin.create(f"/apis/{names.API_VERSION}/domains?dryRun=All", item)


@pytest.mark.parametrize(
    "cidr",
    [
        *("0.0.0.0/0", "10.0.0.0/08", "100.64.0.0/10", "10.0.0.2/31", "10.0.0.1/32"),
        *("::/0", "::1/128", "fd00::/8", "fd00:0:0:2::/63", "FD00:0:0:8000::/49"),
        *("2001:db8:a:b::/64", "1:2:3:4:5:6:7::/112", "::2:3:4:5:6:7:8/125"),
        *("1:2:3:4:5:6:7:8/127", "1:2:3:4:5:6:7:9/128", "fd00:0:0:0::/62", "a::b:0:0:0/80"),
    ],
)
def test_network_is_taken_by_server_and_model(place: Place, cidr: str) -> None:
    answer = offered(place, cidr)

    assert answer.ok, answer.message
    assert DomainSpec.model_validate({"meshCIDR": cidr}).mesh_cidr == cidr


@pytest.mark.parametrize(
    "cidr",
    [
        *("0.0.0.1/0", "10.0.0.1/031", "10.0.0.1/31", "100.64.0.0/9"),
        *("::1/0", "::1/127", "fd00::1/64", "fd00:0:0:1::/63", "FD00:0:0:8000::/48"),
        *("1:2:3:4:5:6:7:9/127", "::2:3:4:5:6:7:8/124", "1:2:3:4:5:6:7::/111"),
        *("1:2:3:4:5:6:0:8/112", "a::b:0:0:0/79", "abcd::/15"),
    ],
)
def test_host_bits_are_refused_by_server_and_model(place: Place, cidr: str) -> None:
    answer = offered(place, cidr)

    assert answer.status == 422, answer.message
    assert "spec.meshCIDR" in answer.message
    assert "host bits" in answer.message
    with pytest.raises(ValidationError, match="host bits"):
        DomainSpec.model_validate({"meshCIDR": cidr})


@pytest.mark.parametrize(
    "cidr", ["::/129", "fd00::1:/64", "fd00::1::/64", "1:2:3:4/64", "::1%1/64"]
)
def test_what_is_no_network_is_refused(place: Place, cidr: str) -> None:
    answer = offered(place, cidr)

    assert answer.status == 422
    assert "spec.meshCIDR" in answer.message
    with pytest.raises(ValidationError):
        DomainSpec.model_validate({"meshCIDR": cidr})


def test_address_in_two_notations_is_refused(place: Place) -> None:
    answer = offered(place, "::ffff:10.0.0.0/120")

    assert answer.status == 422
    assert "IPv4 address inside" in answer.message
