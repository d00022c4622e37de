"""The environment of `broker serve`: every knob, its default, and every way to get it wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from dev.pki import Authority, new_key, private_key_pem
from function.contract.record import wire
from function.contract.strategy import DocumentForm
from reconciler.settings import Settings, SettingsError, parsing
from reconciler.settings.parsing import ListenAddress

BROKER = "PLEXSPHERE_PROVISIONING_BROKER_"
PASSWORD = "hunter2"
REQUIRED = {
    "PLEXSPHERE_DSN": f"postgresql://broker:{PASSWORD}@db.example.org/broker?sslmode=verify-full",
    f"{BROKER}ENROL_BASE_URL": "https://api.example.org",
    f"{BROKER}PLEXD_DOWNLOAD_URL": "https://downloads.example.org/plexd-linux-{arch}",
    f"{BROKER}PLEXD_IMAGE": "registry.example.org/plexd:v0.8.0",
}
SUM = "0123456789abcdef" * 4
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


def load(**changes: str) -> Settings:
    return Settings.load({**REQUIRED, **changes})


def faults(**changes: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(**changes)
    assert PASSWORD not in str(caught.value)
    return caught.value.faults


def test_the_defaults_are_the_documented_ones() -> None:
    settings = load()

    assert settings.broker_interval == settings.fleet_interval == timedelta(seconds=30)
    assert settings.token_ttl == timedelta(hours=1)
    assert settings.registration_timeout == timedelta(minutes=15)
    assert settings.deregistration_timeout == timedelta(minutes=15)
    assert settings.orphan_interval == timedelta(minutes=5)
    assert settings.lease_ttl == timedelta(seconds=8)
    assert settings.token_env == "prod"
    assert settings.plexd_sha256 == {}
    assert settings.document_form is DocumentForm.PLEXD
    assert settings.ca_bundle is None
    assert settings.management_cluster == "local"
    assert settings.node_listen == ListenAddress(host="127.0.0.1", port=8443)
    assert settings.operator_listen == ListenAddress(host="127.0.0.1", port=8444)
    assert (settings.register_rate.per_address, settings.register_rate.per_project) == (10, 50)
    assert settings.tls_cert_file is settings.tls_key_file is settings.kubeconfig is None
    assert settings.log_level == "info"
    assert settings.migrate == "auto"
    assert settings.keep_resources == timedelta(days=90)
    assert settings.keep_tokens == timedelta(days=30)
    assert settings.keep_events == timedelta(days=7)


def test_what_is_over_may_be_kept_for_ever() -> None:
    settings = load(
        PLEXSPHERE_RETENTION_RESOURCES="never",
        PLEXSPHERE_RETENTION_TOKENS="25h",
        PLEXSPHERE_RETENTION_EVENTS="87840h",
    )

    assert settings.keep_resources is None
    assert settings.keep_tokens == timedelta(hours=25)
    assert settings.keep_events == timedelta(days=3660)


def test_the_password_is_not_shown() -> None:
    settings = load()

    assert PASSWORD not in repr(settings)
    assert PASSWORD not in settings.model_dump_json()
    assert PASSWORD in settings.dsn.get_secret_value()


@pytest.mark.parametrize("name", sorted(REQUIRED))
@pytest.mark.parametrize("value", [None, "", "  \t"], ids=["absent", "empty", "blank"])
def test_a_required_knob_that_is_missing_is_named(name: str, value: str | None) -> None:
    environ = {key: text for key, text in REQUIRED.items() if key != name}
    if value is not None:
        environ[name] = value

    with pytest.raises(SettingsError) as caught:
        Settings.load(environ)

    assert caught.value.faults == (f"{name}: must be set",)


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load({f"{BROKER}TOKEN_TTL": "1 hour"})

    assert len(caught.value.faults) == len(REQUIRED) + 1


@pytest.mark.parametrize("ttl", ["4s", "60s"])
def test_the_bounds_of_a_lease_are_taken(ttl: str) -> None:
    settings = load(PLEXSPHERE_LEASE_TTL=ttl)

    assert settings.lease_ttl == timedelta(seconds=int(ttl.removesuffix("s")))


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("PLEXSPHERE_DSN", f"host=db password={PASSWORD}", "postgresql:// URL"),
        ("PLEXSPHERE_DSN", f"mysql://u:{PASSWORD}@db/x", "postgresql:// URL"),
        ("PLEXSPHERE_DSN", f"postgresql://u:{PASSWORD}@db:port/x", "port"),
        ("PLEXSPHERE_DSN", f"postgresql://u:{PASSWORD}@db:65536/x", "port"),
        ("PLEXSPHERE_DSN", f"postgresql://u:{PASSWORD}@db:1,other:0x1/x", "port"),
        ("PLEXSPHERE_DSN", f"postgresql://u:{PASSWORD}@[::1/x", "postgresql:// URL"),
        (f"{BROKER}RECONCILE_INTERVAL", "30", "duration"),
        (f"{BROKER}RECONCILE_INTERVAL", "-30s", "duration"),
        (f"{BROKER}RECONCILE_INTERVAL", "30 s", "duration"),
        (f"{BROKER}RECONCILE_INTERVAL", "0", "between 100ms and 24h"),
        (f"{BROKER}RECONCILE_INTERVAL", "25h", "between 100ms and 24h"),
        (f"{BROKER}RECONCILE_INTERVAL", "9" * 400 + "h", "duration"),
        ("PLEXSPHERE_MANAGEMENT_FLEET_RECONCILE_INTERVAL", "0s", "between 100ms and 24h"),
        (f"{BROKER}ORPHAN_INTERVAL", "0s", "between 100ms and 24h"),
        ("PLEXSPHERE_LEASE_TTL", "3s", "between 4s and 60s"),
        ("PLEXSPHERE_LEASE_TTL", "2m", "between 4s and 60s"),
        (f"{BROKER}TOKEN_TTL", "299s", "between 300s and 24h"),
        (f"{BROKER}TOKEN_TTL", "24h1s", "between 300s and 24h"),
        (f"{BROKER}REGISTRATION_TIMEOUT", "59s", "between 1m and 24h"),
        (f"{BROKER}REGISTRATION_TIMEOUT", "24h1s", "between 1m and 24h"),
        (f"{BROKER}DEREGISTRATION_TIMEOUT", "59s", "between 1m and 24h"),
        (f"{BROKER}TOKEN_ENV", "prod1", "lower-case letters"),
        (f"{BROKER}TOKEN_ENV", "Prod", "lower-case letters"),
        (f"{BROKER}TOKEN_ENV", "p" * 33, "lower-case letters"),
        (f"{BROKER}ENROL_BASE_URL", "api.example.org", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "ftp://api.example.org", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "https://", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "https:///path", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "/v1", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "https://a b.example.org", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "https://x.example.org:port", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", "https://x.example.org/'$(id)'", "absolute http(s) URL"),
        (f"{BROKER}ENROL_BASE_URL", f"https://u:{PASSWORD}@x.example.org", "credentials"),
        (f"{BROKER}ENROL_BASE_URL", "https://x.example.org/?a=b", "without a query"),
        (f"{BROKER}ENROL_BASE_URL", "https://x.example.org/{arch}", "placeholder"),
        (f"{BROKER}PLEXD_DOWNLOAD_URL", "plexd-linux-amd64", "absolute http(s) URL"),
        (f"{BROKER}PLEXD_DOWNLOAD_URL", "https://x.example.org/{os}", "absolute http(s) URL"),
        (f"{BROKER}PLEXD_DOWNLOAD_URL", "https://x.example.org/#a", "fragment"),
        (f"{BROKER}PLEXD_SHA256", SUM, "amd64="),
        (f"{BROKER}PLEXD_SHA256", f"amd64={SUM[1:]}", "amd64="),
        (f"{BROKER}PLEXD_SHA256", f"riscv={SUM}", "amd64="),
        (f"{BROKER}PLEXD_SHA256", f"amd64={SUM},amd64={SUM}", "amd64="),
        (f"{BROKER}PLEXD_IMAGE", "registry.example.org/plexd", "a tag or a digest"),
        (f"{BROKER}PLEXD_IMAGE", "registry.example.org:5000/plexd", "a tag or a digest"),
        (f"{BROKER}PLEXD_IMAGE", "registry.example.org/plexd:latest", ":latest"),
        (f"{BROKER}PLEXD_IMAGE", "plexd:latest", ":latest"),
        (f"{BROKER}PLEXD_IMAGE", f"plexd:latest@sha256:{SUM}", ":latest"),
        (f"{BROKER}PLEXD_IMAGE", "plexd@sha256:abc", "image reference"),
        (f"{BROKER}PLEXD_IMAGE", "plexd:", "a valid tag"),
        (f"{BROKER}PLEXD_IMAGE", "Plexd:v1", "image reference"),
        (f"{BROKER}PLEXD_IMAGE", "plexd :v1", "image reference"),
        (f"{BROKER}DOCUMENT_FORM", "cloud-init", "plexd or seed"),
        (f"{BROKER}CA_BUNDLE_FILE", "/nowhere/ca.crt", "a file that can be read"),
        ("PLEXSPHERE_MANAGEMENT_CLUSTER", "EU 1", "kebab-case"),
        ("PLEXSPHERE_MIGRATE", "always", "auto or never"),
        ("PLEXSPHERE_RETENTION_RESOURCES", "24h", "between 25h and"),
        ("PLEXSPHERE_RETENTION_TOKENS", "24h59m", "between 25h and"),
        ("PLEXSPHERE_RETENTION_EVENTS", "90000h", "between 25h and"),
        ("PLEXSPHERE_RETENTION_EVENTS", "Never", "duration"),
        ("PLEXSPHERE_NODE_LISTEN", "8443", "host:port"),
        ("PLEXSPHERE_NODE_LISTEN", "127.0.0.1:http", "host:port"),
        ("PLEXSPHERE_NODE_LISTEN", "127.0.0.1:65536", "host:port"),
        ("PLEXSPHERE_NODE_LISTEN", "0.0.0.0:8443", "a loopback address"),
        ("PLEXSPHERE_NODE_LISTEN", ":8443", "a loopback address"),
        ("PLEXSPHERE_OPERATOR_LISTEN", "[::]:8444", "a loopback address"),
        ("PLEXSPHERE_TLS_CERT_FILE", "/nowhere/tls.crt", "a file that can be read"),
        ("PLEXSPHERE_REGISTER_RATE", "10", "per address"),
        ("PLEXSPHERE_REGISTER_RATE", "0/s", "per address"),
        ("PLEXSPHERE_REGISTER_RATE", "1/s,2/s,3/s", "per address"),
        ("KUBECONFIG", "/nowhere/config", "a file that can be read"),
        ("PLEXSPHERE_LOG_LEVEL", "loud", "debug, info"),
        ("PLEXSPHERE_OPERATOR_AUDIENCE", "two words", "without spaces"),
    ],
    ids=lambda value: value.removeprefix("PLEXSPHERE_").removeprefix("PROVISIONING_BROKER_")[:40],
)
def test_a_wrong_knob_is_one_line_that_names_it_and_the_rule(
    name: str, value: str, rule: str
) -> None:
    (line,) = faults(**{name: value})

    assert line.startswith(f"{name}: ")
    assert rule in line
    assert len(value) < 4 or value not in line
    assert "\n" not in line


def test_a_plain_http_download_needs_sums() -> None:
    url = {f"{BROKER}PLEXD_DOWNLOAD_URL": "http://downloads.example.org/plexd"}

    (line,) = faults(**url)
    settings = load(**url, **{f"{BROKER}PLEXD_SHA256": f"amd64={SUM.upper()}, arm64={SUM}"})

    assert line.startswith(f"{BROKER}PLEXD_SHA256: must be set")
    assert settings.plexd_sha256 == {"amd64": SUM, "arm64": SUM}


@pytest.mark.parametrize("given", ["CERT", "KEY"])
def test_certificate_and_key_come_together(given: str, tmp_path: Path) -> None:
    present = tmp_path / "file.pem"
    present.write_text("x")
    missing = {"CERT": "KEY", "KEY": "CERT"}[given]

    (line,) = faults(**{f"PLEXSPHERE_TLS_{given}_FILE": str(present)})

    assert line.startswith(f"PLEXSPHERE_TLS_{missing}_FILE: must be set")


@pytest.mark.parametrize(
    ("certificate", "key"),
    [("tls.key", "tls.crt"), ("tls.crt", "other.key"), ("tls.crt", "locked.key"), ("x", "x")],
    ids=["swapped", "of another", "with a passphrase", "nonsense"],
)
def test_certificate_and_key_must_be_a_pair(certificate: str, key: str, tmp_path: Path) -> None:
    authority = Authority.create("tests")
    authority.server_folder(tmp_path, "broker")
    (tmp_path / "other.key").write_bytes(private_key_pem(new_key()))
    (tmp_path / "locked.key").write_bytes(
        new_key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    (tmp_path / "x").write_text("x")

    (line,) = faults(
        PLEXSPHERE_TLS_CERT_FILE=str(tmp_path / certificate),
        PLEXSPHERE_TLS_KEY_FILE=str(tmp_path / key),
    )

    assert line.startswith("PLEXSPHERE_TLS_CERT_FILE, PLEXSPHERE_TLS_KEY_FILE: must be")
    assert str(tmp_path) not in line


@pytest.mark.parametrize("hosts", ["db", "db:5432", "a:1,b:2", "[::1]:5432", "a,b", ""])
def test_a_dsn_may_name_hosts_with_and_without_ports(hosts: str) -> None:
    dsn = f"postgresql://u:{PASSWORD}@{hosts}/x?host=db"

    settings = load(PLEXSPHERE_DSN=dsn, PLEXSPHERE_DSN_TLS="unverified")

    assert settings.dsn.get_secret_value() == dsn


def test_with_tls_it_may_listen_anywhere(tmp_path: Path) -> None:
    Authority.create("tests").server_folder(tmp_path, "broker")

    settings = load(
        PLEXSPHERE_TLS_CERT_FILE=str(tmp_path / "tls.crt"),
        PLEXSPHERE_TLS_KEY_FILE=str(tmp_path / "tls.key"),
        PLEXSPHERE_NODE_LISTEN=":8443",
        PLEXSPHERE_OPERATOR_LISTEN="[::1]:0",
    )

    assert settings.node_listen == ListenAddress(host="0.0.0.0", port=8443)  # noqa: S104
    assert settings.operator_listen == ListenAddress(host="::1", port=0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (CERTIFICATE + "-----BEGIN PRIVATE KEY-----", "without a key"),
        ("nonsense", "PEM certificates"),
        (CERTIFICATE + "x" * parsing.CA_BUNDLE_MAX_BYTES, "at most"),
    ],
    ids=["key", "nonsense", "too large"],
)
def test_a_ca_bundle_is_certificates_alone(text: str, rule: str, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text(text)

    (line,) = faults(**{f"{BROKER}CA_BUNDLE_FILE": str(bundle)})

    assert rule in line


def test_what_documents_need_is_put_together(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text(CERTIFICATE)
    settings = load(
        **{
            f"{BROKER}ENROL_BASE_URL": " https://api.example.org/base/ ",
            f"{BROKER}CA_BUNDLE_FILE": str(bundle),
            f"{BROKER}DOCUMENT_FORM": "seed",
        }
    )

    assert wire(settings.enrolment) == {
        "baseURL": "https://api.example.org/base",
        "plexdDownloadURL": REQUIRED[f"{BROKER}PLEXD_DOWNLOAD_URL"],
        "plexdSHA256": {},
        "plexdImage": REQUIRED[f"{BROKER}PLEXD_IMAGE"],
        "caBundle": CERTIFICATE,
        "documentForm": "seed",
    }


@pytest.mark.parametrize(
    "image",
    [
        "plexd:v1",
        "registry.example.org:5000/team/plexd:v1.2-3",
        f"registry.example.org/plexd@sha256:{SUM}",
        f"registry.example.org/plexd:v1@sha256:{SUM}",
    ],
)
def test_a_pinned_image_is_taken(image: str) -> None:
    assert load(**{f"{BROKER}PLEXD_IMAGE": image}).plexd_image == image


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1h", 3600), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25),
     ("1m0.5s", 60.5), (".5s", 0.5), ("1us", 1e-6), ("1µs", 1e-6), ("0", 0), ("0s", 0)],
)  # fmt: skip
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert parsing.duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "1", "1d", "1s ", "1s1", "1,5s", "+-1s", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parsing.duration(text)


@pytest.mark.parametrize(
    ("text", "rates"),
    [("20/s", (20, 20)), ("20/s,100/s", (20, 100)), ("60/m, 3600/h", (1, 1))],
)
def test_one_rate_counts_for_both(text: str, rates: tuple[float, float]) -> None:
    rate = load(PLEXSPHERE_REGISTER_RATE=text).register_rate

    assert (rate.per_address, rate.per_project) == rates
