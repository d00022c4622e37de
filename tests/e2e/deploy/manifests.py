"""The manifests of kinds.md, word for word, and how to break one of them.

Valid examples of each kind that people or the function write.
"""

from __future__ import annotations

import copy
from typing import Any, Final

import yaml

Object = dict[str, Any]

_TEXT: Final = """
apiVersion: provisioning.plexsphere.com/v1alpha1
kind: Domain
metadata: {name: acme}
spec:
  region: eu-central
  meshCIDR: 100.64.0.0/16
---
apiVersion: provisioning.plexsphere.com/v1alpha1
kind: Project
metadata: {name: shop}
spec:
  id: 0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b
  domainRef: {name: acme}
---
apiVersion: provisioning.plexsphere.com/v1alpha1
kind: Cloud
metadata: {name: hetzner-eu}
spec:
  provider: hetzner
  endpoint: {region: {name: eu, zones: [a, b]}, retries: 3}
---
apiVersion: provisioning.plexsphere.com/v1alpha1
kind: CloudCredential
metadata: {name: hetzner-eu-main}
spec:
  cloudRef: {name: hetzner-eu}
  vault: {mount: kv, path: acme/hetzner}
  secretStoreRef: {kind: ClusterSecretStore, name: openbao}
  projects: [shop]
---
apiVersion: provisioning.plexsphere.com/v1alpha1
kind: BlueprintVersion
metadata: {name: generic-vm-v1alpha1}
spec:
  slug: generic-vm
  version: v1alpha1
  injectionStrategy: cloud-init-user-data
  meshRole: node
  providerKinds: [hetzner, openstack, aws, gcp]
  xr: {apiVersion: blueprints.plexsphere.com/v1alpha1, kind: XGenericVM, scope: Namespaced}
  providerConfig: {kind: ProviderConfig, name: hetzner}
  parameters:
    - {name: region, type: string, required: true}
    - {name: instanceType, type: string, default: standard-2}
    - {name: diskSizeGb, type: integer, default: 40, minimum: 10, maximum: 2000}
    - {name: backups, type: boolean, default: false}
    - {name: size, type: string, enum: [small, large], mutable: true}
    - {name: zone, type: string, pattern: "^[a-z]{2}-[0-9]$", minLength: 4, maxLength: 4}
  constants:
    - {name: namespace, value: machines}
  registration: {policy: Keep, timeout: 15m, attempts: 3}
  terminalConditions: [{type: ProvisioningFailed, status: "True"}]
  provisioningTimeout: 30m
---
apiVersion: provisioning.plexsphere.com/v1alpha1
kind: ProvisioningRecord
metadata:
  name: web-1-0123456789
  finalizers: [provisioning.plexsphere.com/teardown]
  labels: {provisioning.plexsphere.com/xr: web-1}
spec:
  declaration:
    xr:
      apiVersion: provisioning.plexsphere.com/v1alpha1
      kind: ProvisionedResource
      name: web-1
      uid: 7a0d1f6e-5d1c-4b0e-9a55-0c3b8c1d2e3f
    resource: substrate
    blueprint: {name: generic-vm-v1alpha1, version: v1alpha1}
    injectionStrategy: cloud-init-user-data
    meshRole: node
    provider: hetzner
    cloudCredential: hetzner-eu-main
    parameters:
      {region: nbg1, instanceType: standard-2, diskSizeGb: 40, backups: false, namespace: machines}
    given: [region]
    labels: {platform/env: prod, team: checkout}
    retry: 1
  substrate:
    - apiVersion: blueprints.plexsphere.com/v1alpha1
      kind: XGenericVM
      name: pr-0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b
  observed: {exists: true, ready: false, failed: false, reason: "", bootstrapGeneration: 1}
"""

EXAMPLES: Final[dict[str, Object]] = {item["kind"]: item for item in yaml.safe_load_all(_TEXT)}

RECORD_STATUS: Final[Object] = yaml.safe_load("""
phase: Enrolling
provisionedResourceID: 0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b
xrName: pr-0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b
substrate: Present
providerConfigRef: {kind: ProviderConfig, name: hetzner}
enrolment:
  baseURL: https://api.example.org
  plexdDownloadURL: https://downloads.example.org/plexd-linux-{arch}
  plexdSHA256: {amd64: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}
  plexdImage: registry.example.org/plexd:v0.8.0
  caBundle: "-----BEGIN CERTIFICATE-----"
bootstrap: {secretRef: {name: web-1-0123456789-g1}, generation: 1, state: Issued}
node: {id: node-1, meshIP: 100.64.0.7, registeredAt: "2026-01-02T03:04:05Z"}
conditions:
  - type: Ready
    status: "False"
    reason: WaitingForRegistration
    message: the node has not registered yet
    lastTransitionTime: "2026-01-02T03:04:05Z"
    observedGeneration: 1
""") | {"accepted": EXAMPLES["ProvisioningRecord"]["spec"]["declaration"]}

ABSENT: Final = object()


def example(kind: str, name: str = "") -> Object:
    """Return an example of a kind, by default under the name kinds.md gives it."""
    item = copy.deepcopy(EXAMPLES[kind])
    item["metadata"]["name"] = name or item["metadata"]["name"]
    return item


def changed(item: Object, path: str, value: object) -> Object:
    """Return an object with one field at a dotted path set, or left out for `ABSENT`."""
    out = copy.deepcopy(item)
    *parents, last = path.split(".")
    node: Any = out
    for step in parents:
        node = node[int(step)] if isinstance(node, list) else node.setdefault(step, {})
    if value is ABSENT:
        del node[last]
    else:
        node[last] = value
    return out


def holds(found: object, given: object) -> bool:
    """Tell whether all that was given is found; the server may have added defaults."""
    if isinstance(given, dict):
        return isinstance(found, dict) and all(
            key in found and holds(found[key], value) for key, value in given.items()
        )
    if isinstance(given, list):
        return (
            isinstance(found, list)
            and len(found) == len(given)
            and all(holds(left, right) for left, right in zip(found, given, strict=True))
        )
    return found == given
