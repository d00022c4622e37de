"""The document that the demo cloud must at least execute, built here from its parts."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

INSTALL = """#!/bin/sh
set -eu
case "$(uname -m)" in
    x86_64) arch=amd64; sum="{sha256}" ;;
    aarch64) arch=arm64; sum="{sha256}" ;;
    *) echo "no plexd for $(uname -m)" >&2; exit 1 ;;
esac
temp="$(mktemp)"
curl -fsSL --retry 5 --retry-connrefused -o "$temp" "{download_url}/plexd-linux-$arch"
echo "$sum  $temp" | sha256sum -c -
chmod 0755 "$temp"
mv "$temp" /usr/local/bin/plexd
"""

UNIT = """[Unit]
Description=plexd
After=network-online.target cloud-final.service

[Service]
ExecStart=/usr/local/bin/plexd up --config /etc/plexd/config.yaml
EnvironmentFile=-/etc/plexd/environment
Environment=PLEXD_HEARTBEAT_INTERVAL=0.2
Restart=always
RestartSec=5
AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW

[Install]
WantedBy=multi-user.target
"""

JOIN = (
    "set -a; . /etc/plexd/environment; set +a; "
    "/usr/local/bin/plexd join --token-file /etc/plexd/bootstrap-token"
)


def upstream(
    *, api: str, download_url: str, sha256: str, token: str, project_id: str, handle: str
) -> str:
    """The form that published plexd understands."""
    environment = (
        f"PLEXD_API={api}\nPLEXD_PROJECT_ID={project_id}\nPLEXD_RESOURCE_HANDLE={handle}\n"
        "PLEXD_BOOTSTRAP_TOKEN_FILE=/etc/plexd/bootstrap-token\n"
    )
    install = INSTALL.format(sha256=sha256, download_url=download_url)
    body = {
        "write_files": [
            _file("/etc/plexd/bootstrap-token", token, "0600"),
            _file("/etc/plexd/environment", environment, "0600"),
            _file("/etc/plexd/config.yaml", "log_level: info\n", "0600"),
            _file("/etc/plexd/install-plexd.sh", install, "0755"),
            _file("/etc/systemd/system/plexd.service", UNIT, "0644"),
        ],
        "runcmd": [
            ["/etc/plexd/install-plexd.sh"],
            JOIN,
            ["systemctl", "daemon-reload"],
            ["systemctl", "enable", "--now", "plexd.service"],
        ],
    }
    return document(body)


def seed_form(*, api: str, download_url: str, token: str) -> str:
    """The seeds' literal three steps."""
    body = {
        "write_files": [
            _file("/etc/plexd/bootstrap-token", token, "0600"),
            _file("/etc/plexd/plexd.env", f"PLEXD_API_URL={api}\n", "0644"),
        ],
        "runcmd": [
            f"curl -fsSL {download_url}/plexd-linux-amd64 -o /usr/local/bin/plexd",
            "chmod +x /usr/local/bin/plexd",
            f"plexd register --bootstrap-token-file=/etc/plexd/bootstrap-token --api-url={api}",
        ],
    }
    return document(body)


def _file(path: str, content: str, permissions: str) -> dict[str, str]:
    return {"path": path, "content": content, "permissions": permissions, "owner": "root:root"}


def document(body: Mapping[str, object]) -> str:
    """Any document."""
    return "#cloud-config\n" + yaml.safe_dump(body, sort_keys=False)
