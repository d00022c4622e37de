"""The control plane of `dev`: what every other end-to-end test stands on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
import yaml
from crossplane.function import resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from dev.accounts import whoami
from dev.controlplane import EXISTING_CLUSTER, ControlPlane
from dev.crossplane import Crossplane
from dev.kube import Cluster, KubeError, RefusedError
from dev.process import ProcessError, free_port, wait_until

pytestmark = pytest.mark.e2e

DEADLINE_S = 60.0
FUNCTION = "echo"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("plane"), report=print) as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def core(plane: ControlPlane) -> Crossplane:
    crossplane = Crossplane(plane.cluster, plane.run_dir)
    crossplane.start(plane.supervisor, report=print)
    return crossplane


class Echo(grpcv1.FunctionRunnerServiceServicer):
    """Composes one ConfigMap that says which XR it was composed for."""

    def RunFunction(  # noqa: N802 - the service's name
        self, request: fnv1.RunFunctionRequest, _context: grpc.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        answer = response.to(request)
        name = resource.struct_to_dict(request.observed.composite.resource)["metadata"]["name"]
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"composed-for": name}}
        resource.update(answer.desired.resources["config"], config_map)
        answer.desired.resources["config"].ready = fnv1.READY_TRUE
        return answer


@pytest.fixture(scope="module")
def function(core: Crossplane) -> Iterator[str]:
    """Serve `Echo` over mutual TLS and register it."""
    folder = core.function_certificates(FUNCTION)
    credentials = grpc.ssl_server_credentials(
        [((folder / "tls.key").read_bytes(), (folder / "tls.crt").read_bytes())],
        root_certificates=(folder / "ca.crt").read_bytes(),
        require_client_auth=True,
    )
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    register: Any = grpcv1.add_FunctionRunnerServiceServicer_to_server
    register(Echo(), server)
    port = free_port()
    server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    core.register_function(FUNCTION, port)
    yield FUNCTION
    server.stop(grace=None).wait()


def conditions(item: dict[str, Any] | None) -> dict[str, str]:
    status = (item or {}).get("status") or {}
    return {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}


def composition(function_name: str) -> list[dict[str, Any]]:
    return list(
        yaml.safe_load_all(f"""
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {{name: echoes.test.example.org}}
spec:
  scope: Namespaced
  group: test.example.org
  names: {{kind: Echo, plural: echoes}}
  versions:
    - name: v1
      served: true
      referenceable: true
      schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object}}}}}}}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {{name: echoes}}
spec:
  compositeTypeRef: {{apiVersion: test.example.org/v1, kind: Echo}}
  mode: Pipeline
  pipeline: [{{step: echo, functionRef: {{name: {function_name}}}}}]
---
apiVersion: test.example.org/v1
kind: Echo
metadata: {{name: first, namespace: default}}
spec: {{}}
""")
    )


def test_a_function_registered_by_hand_is_called_by_core(
    plane: ControlPlane, function: str
) -> None:
    plane.apply(*composition(function))

    def is_ready() -> bool:
        return (
            conditions(plane.cluster.get("test.example.org/v1", "Echo", "first", "default")).get(
                "Ready"
            )
            == "True"
        )

    wait_until(is_ready, timeout_s=DEADLINE_S)
    (composed,) = plane.cluster.list(
        "v1", "ConfigMap", "default", label_selector="crossplane.io/composite=first"
    )
    assert composed["data"] == {"composed-for": "first"}
    revision = plane.cluster.get("pkg.crossplane.io/v1", "FunctionRevision", f"{function}-dev")
    assert revision is not None
    assert revision["spec"]["desiredState"] == "Active"
    (pipeline,) = plane.cluster.list("apiextensions.crossplane.io/v1", "CompositionRevision")
    assert conditions(pipeline)["ValidPipeline"] == "True"


def test_only_the_admin_is_a_master(plane: ControlPlane, core: Crossplane) -> None:
    accounts = {}
    for path in (core.kubeconfig, core.rbac_kubeconfig):
        with Cluster(path, plane.run_dir) as cluster:
            user, groups = whoami(cluster)
            accounts[user.rpartition(":")[2]] = "system:masters" in groups

    assert accounts == {"crossplane": False, "rbac-manager": False}
    assert "system:masters" in whoami(plane.cluster)[1]


def test_what_crossplane_writes_it_writes_as_its_service_accounts(
    plane: ControlPlane, core: Crossplane
) -> None:
    assert plane.audit_log is not None

    with plane.audit_log.open(encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]

    writers = {
        entry["user"]["username"]
        for entry in entries
        if entry.get("userAgent", "").startswith("crossplane/")
    }
    assert "system:serviceaccount:crossplane-system:crossplane" in writers
    assert writers <= {
        "system:serviceaccount:crossplane-system:crossplane",
        "system:serviceaccount:crossplane-system:rbac-manager",
    }


def test_crossplane_may_not_read_what_nobody_granted(plane: ControlPlane, core: Crossplane) -> None:
    with (
        Cluster(core.kubeconfig, plane.run_dir) as cluster,
        pytest.raises(RefusedError) as caught,
    ):
        cluster.list("v1", "Node")

    assert caught.value.status == 403


def test_a_role_that_aggregates_to_crossplane_reaches_it(
    plane: ControlPlane, core: Crossplane
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "test-aggregate",
            "labels": {"rbac.crossplane.io/aggregate-to-crossplane": "true"},
        },
        "rules": [{"apiGroups": [""], "resources": ["podtemplates"], "verbs": ["list"]}],
    }

    plane.apply(role)

    with Cluster(core.kubeconfig, plane.run_dir) as cluster:
        wait_until(lambda: may_list(cluster, "PodTemplate"), timeout_s=DEADLINE_S)


def may_list(cluster: Cluster, kind: str) -> bool:
    try:
        cluster.list("v1", kind)
    except RefusedError as error:
        return error.status != 403
    return True


def test_core_answers_the_api_server_when_a_used_object_is_deleted(
    plane: ControlPlane, core: Crossplane
) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "used", "namespace": "default"},
    }
    usage = {
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {
            "of": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "used"}},
            "reason": "a test needs it",
        },
    }
    plane.apply(config_map, usage)
    wait_until(
        lambda: (
            conditions(
                plane.cluster.get("protection.crossplane.io/v1beta1", "Usage", "keep", "default")
            ).get("Ready")
            == "True"
        ),
        timeout_s=DEADLINE_S,
    )

    with pytest.raises(RefusedError, match="a test needs it"):
        plane.cluster.delete("v1", "ConfigMap", "used", "default")


def test_tokens_of_service_accounts_are_known_to_the_api_server(plane: ControlPlane) -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "someone", "namespace": "default"},
    }
    plane.apply(account)

    path = plane.service_account_kubeconfig("default", "someone")

    user = yaml.safe_load(path.read_text(encoding="utf-8"))["users"][0]["user"]
    review = plane.cluster.resource("authentication.k8s.io/v1", "TokenReview").create(
        body={
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": user["token"]},
        }
    )
    assert review.status.authenticated
    assert review.status.user.username == "system:serviceaccount:default:someone"


def test_applying_waits_for_kinds_and_namespaces_that_come_later(plane: ControlPlane) -> None:
    thing, namespace, definition = yaml.safe_load_all("""
apiVersion: test.example.org/v1
kind: Thing
metadata: {name: early, namespace: later}
---
apiVersion: v1
kind: Namespace
metadata: {name: later}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.test.example.org}
spec:
  group: test.example.org
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
""")

    plane.apply(thing, namespace, definition)

    assert plane.cluster.get("test.example.org/v1", "Thing", "early", "later") is not None


def test_applying_gives_up_on_a_kind_that_never_comes(plane: ControlPlane) -> None:
    item = {"apiVersion": "nowhere.example.org/v1", "kind": "Never", "metadata": {"name": "x"}}

    with pytest.raises(KubeError, match="Never x: the server does not serve this kind"):
        plane.apply(item, timeout_s=0.5)


def test_applying_something_invalid_fails_at_once(plane: ControlPlane) -> None:
    metadata = {"name": "Not A Name", "namespace": "default"}

    with pytest.raises(RefusedError, match="cannot apply ConfigMap default/Not A Name") as caught:
        plane.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    assert caught.value.status == 422


def test_policies_get_their_status(plane: ControlPlane) -> None:
    kind = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["DELETE"],
        "resources": ["configmaps"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}],
    }
    plane.apply(
        {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "test"}, "spec": spec}
    )

    wait_until(
        lambda: (
            "observedGeneration" in ((plane.cluster.get(*kind, "test") or {}).get("status") or {})
        ),
        timeout_s=DEADLINE_S,
    )


def test_a_second_control_plane_does_not_start_in_the_same_folder(plane: ControlPlane) -> None:
    with pytest.raises(ProcessError, match="another one runs in"):
        ControlPlane(plane.run_dir).start()

    assert plane.cluster.get("v1", "Namespace", "default") is not None


def test_a_killed_parent_leaves_no_process(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != EXISTING_CLUSTER}
    command = [sys.executable, "-m", "dev.controlplane", "--run-dir", str(tmp_path)]

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        wait_for = (line for line in parent.stdout if line.startswith("export KUBECONFIG="))
        assert next(wait_for).strip() == f"export KUBECONFIG={tmp_path / 'kubeconfig'}"
        family = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()

    assert len(family) == 5  # etcd, API server, its controllers, core, rbac manager
    _, alive = psutil.wait_procs(family, timeout=DEADLINE_S)
    assert alive == []
