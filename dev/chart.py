"""Renders the few Helm templates that Crossplane's rights come from.

A reader for the subset of Helm that Crossplane's RBAC templates use. Only `dev.crossplane`
and tests import it.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

NAMESPACE = "crossplane-system"
"""Where the chart is installed; its own default."""

RBAC_TEMPLATES = (
    "serviceaccount.yaml",
    "clusterrole.yaml",
    "clusterrolebinding.yaml",
    "rbac-manager-serviceaccount.yaml",
    "rbac-manager-clusterrole.yaml",
    "rbac-manager-clusterrolebinding.yaml",
    "rbac-manager-managed-clusterroles.yaml",
    "rbac-manager-allowed-provider-permissions.yaml",
)
"""Accounts and rights of the chart; what it deploys runs as host processes here."""

TEXTS: Mapping[str, str] = {
    'template "crossplane.name" .': "crossplane",
    ".Release.Namespace": NAMESPACE,
    'include "crossplane.labels" . | indent 4': "",
}
"""Directives that print something, and what the chart's defaults print."""

CONDITIONS: Mapping[str, bool] = {
    "if .Values.rbacManager.deploy": True,
    "if not .Values.rbacManager.skipAggregatedClusterRoles": True,
    "if .Values.serviceAccount.create": True,
    "if not .Values.serviceAccount.create": False,
    "with .Values.serviceAccount.customAnnotations": False,
    "with .Values.imagePullSecrets": False,
}
"""Directives that open a block, and whether the chart's defaults print it."""

_DIRECTIVE = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)


class ChartError(ValueError):
    """A template holds a directive this reader does not know, or ends inside a block."""


def render(template: str) -> str:
    """Render a template with the chart's default values.

    Raises:
        ChartError: as the class says.

    Source: text/template, "Text and spaces", for the trimming dashes.
    """
    output = ""
    open_blocks: list[bool] = []
    position = 0
    trim_next = False
    for match in _DIRECTIVE.finditer(template):
        text = template[position : match.start()]
        text = text.lstrip() if trim_next else text
        output += (text.rstrip() if match[1] else text) if all(open_blocks) else ""
        output += _step(match[2], open_blocks)
        position, trim_next = match.end(), bool(match[3])
    if open_blocks:
        message = "cannot render template: a block is not closed"
        raise ChartError(message)
    rest = template[position:]
    return output + (rest.lstrip() if trim_next else rest)


def _step(directive: str, open_blocks: list[bool]) -> str:
    if directive in CONDITIONS:
        open_blocks.append(CONDITIONS[directive])
    elif directive == "else" and open_blocks:
        open_blocks[-1] = not open_blocks[-1]
    elif directive == "end" and open_blocks:
        open_blocks.pop()
    elif not all(open_blocks):
        # Inside a block that is not printed: only nesting matters.
        if directive.startswith(("if ", "with ", "range ")):
            open_blocks.append(False)
    elif directive in TEXTS:
        return TEXTS[directive]
    else:
        message = f"cannot render template: unknown directive {directive!r}"
        raise ChartError(message)
    return ""


def rbac_objects(templates: Path) -> Iterator[dict[str, Any]]:
    """Yield the chart's service accounts, roles and bindings.

    Args:
        templates: the chart's template folder.

    Raises:
        ChartError: as `render`.
    """
    for name in RBAC_TEMPLATES:
        text = render((templates / name).read_text(encoding="utf-8"))
        yield from filter(None, yaml.safe_load_all(text))
