"""The files that bring plexd onto a machine: installer, unit, environment.

Their text, from values that are already checked. `cloudinit` imports it, and `plexd_pod`
for the path of the configuration. Source: contracts §1.2 and §2.1 to §2.3, and §6 item 40.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BINARY: Final = "/usr/local/bin/plexd"
CONFIG: Final = "/etc/plexd/config.yaml"
ENVIRONMENT: Final = "/etc/plexd/environment"

# No `After=cloud-final.service`: the document starts the unit from within that service, and
# would wait for itself.
UNIT: Final = f"""\
[Unit]
Description=plexd node agent
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-{ENVIRONMENT}
ExecStart={BINARY} up --config {CONFIG}
Restart=always
RestartSec=5
AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW
NoNewPrivileges=yes
ProtectSystem=strict
StateDirectory=plexd
StateDirectoryMode=0700
RuntimeDirectory=plexd
ReadWritePaths=/var/lib/plexd /run/plexd

[Install]
WantedBy=multi-user.target
"""

_INSTALLER: Final = """\
#!/bin/sh
set -eu
umask 077
case "$(uname -m)" in
{branches}
  *) echo 'install-plexd: unsupported architecture' >&2; exit 1 ;;
esac
tmp=$(mktemp {binary}.XXXXXX)
trap 'rm -f "$tmp"' EXIT
curl -fsSL -g --proto '{protocols}' --retry 5 --retry-delay 2 --retry-connrefused \\
  --connect-timeout 10 --max-time 300 -o "$tmp" "$url"
{verify}chmod 0755 "$tmp"
mv -f "$tmp" {binary}
"""

_MACHINES: Final = {"amd64": "x86_64|amd64", "arm64": "aarch64|arm64"}
"""What `uname -m` says on each architecture."""


def environment(values: Mapping[str, str]) -> str:
    """Return an environment file that systemd and a POSIX shell read alike.

    Args:
        values: Checked to hold neither quotes nor line ends.
    """
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def installer(urls: Mapping[str, str], sums: Mapping[str, str]) -> str:
    """Return the script that downloads plexd, checks it and moves it into place at once.

    Where a sum is configured for any architecture, one without a sum is refused: a
    checksum that only some machines check protects none.

    Args:
        urls: Download URL by architecture, checked to be inert in a shell.
        sums: SHA-256 by architecture; empty where none is configured.
    """
    branches = "\n".join(_branch(arch, url, sums) for arch, url in urls.items())
    plain = any(url.startswith("http://") for url in urls.values())
    verify = 'echo "$sum  $tmp" | sha256sum -c - >/dev/null\n' if sums else ""
    return _INSTALLER.format(
        branches=branches,
        binary=BINARY,
        protocols="=http,https" if plain else "=https",
        verify=verify,
    )


def _branch(arch: str, url: str, sums: Mapping[str, str]) -> str:
    if sums and arch not in sums:
        action = f"echo 'install-plexd: no checksum for {arch}' >&2; exit 1"
    else:
        action = f"url='{url}'" + (f" sum={sums[arch]}" if sums else "")
    return f"  {_MACHINES[arch]}) {action} ;;"
