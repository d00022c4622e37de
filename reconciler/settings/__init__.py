"""The settings of `broker serve`: the environment, checked once at the start.

Every variable with its unit, default, bounds and rule. A fault names the variable and the
rule and never a value, because one of them holds a password. Source: kinds.md "Settings of
`broker serve`"; seed 003 "The three composition-root knobs".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from function.contract.record import Enrolment
from function.contract.strategy import DocumentForm
from reconciler.domain.guard.lease import TTL_DEFAULT, TTL_MAX, TTL_MIN
from reconciler.settings import parsing
from reconciler.settings.environment import SettingsError
from reconciler.settings.events import EventSettings
from reconciler.settings.parsing import ListenAddress, RegisterRate
from reconciler.settings.store import RetentionSettings

__all__ = ["Settings", "SettingsError"]

_BROKER: Final = "PLEXSPHERE_PROVISIONING_BROKER_"
INTERVAL_MIN: Final = timedelta(milliseconds=100)
"""Below this a sweep would never rest."""
INTERVAL_MAX: Final = timedelta(hours=24)
DEADLINE_MIN: Final = timedelta(minutes=1)
DEADLINE_MAX: Final = timedelta(hours=24)
TOKEN_TTL_MIN: Final = timedelta(seconds=300)
TOKEN_TTL_MAX: Final = timedelta(hours=24)
"""The issuer's window (contracts §3.5)."""


_Interval = Annotated[
    timedelta, parsing.between(INTERVAL_MIN, INTERVAL_MAX, "must lie between 100ms and 24h")
]
_TTL = Annotated[
    timedelta, parsing.between(TOKEN_TTL_MIN, TOKEN_TTL_MAX, "must lie between 300s and 24h")
]
_Deadline = Annotated[
    timedelta, parsing.between(DEADLINE_MIN, DEADLINE_MAX, "must lie between 1m and 24h")
]
_LeaseTTL = Annotated[timedelta, parsing.between(TTL_MIN, TTL_MAX, "must lie between 4s and 60s")]
_File = Annotated[Path, BeforeValidator(parsing.file)]
_Slug = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


class Settings(EventSettings, RetentionSettings):
    """The checked settings; durations are timedeltas, files exist, URLs are absolute."""

    rules: ClassVar[Mapping[str, str]] = {
        **RetentionSettings.rules,
        "PLEXSPHERE_PROVISIONING_BROKER_TOKEN_ENV": "must be 1 to 32 lower-case letters",
        "PLEXSPHERE_PROVISIONING_BROKER_DOCUMENT_FORM": "must be plexd or seed",
        "PLEXSPHERE_MANAGEMENT_CLUSTER": "must be kebab-case of at most 63 characters",
        "PLEXSPHERE_LOG_LEVEL": "must be debug, info, warning or error",
        "PLEXSPHERE_OPERATOR_AUDIENCE": "must be at most 256 characters without spaces",
        "PLEXSPHERE_MIGRATE": "must be auto or never",
    }

    migrate: Literal["auto", "never"] = Field(
        default="auto",
        alias="PLEXSPHERE_MIGRATE",
        description="Whether the schema is migrated at the start, or by `broker migrate` only.",
    )
    broker_interval: _Interval = Field(
        default=timedelta(seconds=30),
        alias=f"{_BROKER}RECONCILE_INTERVAL",
        description="Between two sweeps, which only catch what the watches missed.",
    )
    fleet_interval: _Interval = Field(
        default=timedelta(seconds=30),
        alias="PLEXSPHERE_MANAGEMENT_FLEET_RECONCILE_INTERVAL",
        description="Between two sweeps of the fleet.",
    )
    token_ttl: _TTL = Field(
        default=timedelta(hours=1),
        alias=f"{_BROKER}TOKEN_TTL",
        description="A token's window; an hour covers a slow boot, and the window is renewed.",
    )
    registration_timeout: _Deadline = Field(
        default=timedelta(minutes=15),
        alias=f"{_BROKER}REGISTRATION_TIMEOUT",
        description="How long a node may take once its substrate is ready; then its record stalls.",
    )
    provisioning_timeout: _Deadline = Field(
        default=timedelta(minutes=30),
        alias=f"{_BROKER}PROVISIONING_TIMEOUT",
        description="How long a substrate may take before its record stalls and says why.",
    )
    deregistration_timeout: _Deadline = Field(
        default=timedelta(minutes=15),
        alias=f"{_BROKER}DEREGISTRATION_TIMEOUT",
        description="How long a node may take to leave the mesh; then its record stalls.",
    )
    orphan_interval: _Interval = Field(
        default=timedelta(minutes=5),
        alias=f"{_BROKER}ORPHAN_INTERVAL",
        description="Between two sweeps for orphans.",
    )
    token_env: Annotated[str, Field(max_length=32, pattern=r"^[a-z]+$")] = Field(
        default="prod",
        alias=f"{_BROKER}TOKEN_ENV",
        description="The env segment of tokens; tells a stray token's origin.",
    )
    enrol_base_url: Annotated[str, BeforeValidator(parsing.base_url)] = Field(
        alias=f"{_BROKER}ENROL_BASE_URL", description="Where nodes reach the node listener."
    )
    plexd_download_url: Annotated[str, BeforeValidator(parsing.url)] = Field(
        alias=f"{_BROKER}PLEXD_DOWNLOAD_URL",
        description="Where nodes fetch plexd; `{arch}` becomes amd64 or arm64.",
    )
    plexd_sha256: Annotated[dict[str, str], BeforeValidator(parsing.sums)] = Field(
        default_factory=dict,
        alias=f"{_BROKER}PLEXD_SHA256",
        description="plexd's sums per architecture; a plain http download is only safe with them.",
    )
    plexd_image: Annotated[str, BeforeValidator(parsing.image)] = Field(
        alias=f"{_BROKER}PLEXD_IMAGE",
        description="plexd's image, pinned by tag or digest, so that a restart changes nothing.",
    )
    document_form: DocumentForm = Field(
        default=DocumentForm.PLEXD,
        alias=f"{_BROKER}DOCUMENT_FORM",
        description="The user-data document; `seed` is the seeds' literal form.",
    )
    ca_bundle: Annotated[str, BeforeValidator(parsing.ca_bundle)] | None = Field(
        default=None,
        alias=f"{_BROKER}CA_BUNDLE_FILE",
        description="CA certificates that nodes must trust to reach us; none for public ones.",
    )
    management_cluster: _Slug = Field(
        default="local",
        alias="PLEXSPHERE_MANAGEMENT_CLUSTER",
        description="Slug of the cluster this process drives, for the cluster's life: what was "
        "accepted under another one is not driven.",
    )
    lease_ttl: _LeaseTTL = Field(
        default=TTL_DEFAULT,
        alias="PLEXSPHERE_LEASE_TTL",
        description="How long the leader may fail to renew its lease before another replica leads.",
    )
    node_listen: Annotated[ListenAddress, BeforeValidator(parsing.listen)] = Field(
        default=ListenAddress(host="127.0.0.1", port=8443),
        alias="PLEXSPHERE_NODE_LISTEN",
        description="For nodes; loopback by default, so that nothing is open by accident.",
    )
    operator_listen: Annotated[ListenAddress, BeforeValidator(parsing.listen)] = Field(
        default=ListenAddress(host="127.0.0.1", port=8444),
        alias="PLEXSPHERE_OPERATOR_LISTEN",
        description="For operators: health and the read API.",
    )
    tls_cert_file: _File | None = Field(
        default=None,
        alias="PLEXSPHERE_TLS_CERT_FILE",
        description="PEM chain of both listeners; needed off loopback.",
    )
    tls_key_file: _File | None = Field(
        default=None, alias="PLEXSPHERE_TLS_KEY_FILE", description="PEM key of both listeners."
    )
    register_rate: Annotated[RegisterRate, BeforeValidator(parsing.rate)] = Field(
        default=RegisterRate(per_address=10.0, per_project=50.0),
        alias="PLEXSPHERE_REGISTER_RATE",
        description="Registrations per second of one address and of one Project.",
    )
    kubeconfig: _File | None = Field(
        default=None,
        alias="KUBECONFIG",
        description="The cluster to drive; absent: the one this process runs in.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        alias="PLEXSPHERE_LOG_LEVEL",
        description="How much is logged; never a body, a header or a token.",
    )
    operator_audience: Annotated[str, Field(max_length=256, pattern=r"^[!-~]+$")] | None = Field(
        default=None,
        alias="PLEXSPHERE_OPERATOR_AUDIENCE",
        description="Audience of operators' Kubernetes tokens; none: the API server's own.",
    )

    @property
    def enrolment(self) -> Enrolment:
        """What every enrolment document needs, as the record's status publishes it."""
        return Enrolment(
            base_url=self.enrol_base_url,
            plexd_download_url=self.plexd_download_url,
            plexd_sha256=self.plexd_sha256,
            plexd_image=self.plexd_image,
            ca_bundle=self.ca_bundle,
            document_form=self.document_form,
        )

    def _combined_faults(self) -> list[str]:
        faults = super()._combined_faults()
        if urlsplit(self.plexd_download_url).scheme == "http" and not self.plexd_sha256:
            faults.append(
                f"{_BROKER}PLEXD_SHA256: must be set when PLEXD_DOWNLOAD_URL is plain http"
            )
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            missing = "CERT" if self.tls_cert_file is None else "KEY"
            faults.append(f"PLEXSPHERE_TLS_{missing}_FILE: must be set, because the other one is")
        elif self.tls_cert_file is None:
            listeners = {"NODE": self.node_listen, "OPERATOR": self.operator_listen}
            for name, address in listeners.items():
                if not address.is_loopback:
                    rule = "must be a loopback address unless the TLS files are set"
                    faults.append(f"PLEXSPHERE_{name}_LISTEN: {rule}")
        elif self.tls_key_file is not None and not parsing.is_pair(
            self.tls_cert_file, self.tls_key_file
        ):
            names = "PLEXSPHERE_TLS_CERT_FILE, PLEXSPHERE_TLS_KEY_FILE"
            faults.append(f"{names}: must be a PEM chain and its key, without a passphrase")
        return faults
