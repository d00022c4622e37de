"""The reader for the chart's RBAC templates."""

from pathlib import Path

import pytest

from dev import chart


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("a: b\n", "a: b\n", id="plain text stays"),
        pytest.param(
            'name: {{ template "crossplane.name" . }}:view',
            "name: crossplane:view",
            id="the chart's name is put in place",
        ),
        pytest.param(
            "namespace: {{ .Release.Namespace }}\n",
            "namespace: crossplane-system\n",
            id="the namespace is put in place",
        ),
        pytest.param(
            'a: b\n    {{- include "crossplane.labels" . | indent 4 }}\nc: d',
            "a: b\nc: d",
            id="the chart's labels leave no trace",
        ),
        pytest.param(
            "{{- if .Values.rbacManager.deploy }}\na: b\n{{- end }}\n",
            "\na: b\n",
            id="a block that is on stays",
        ),
        pytest.param(
            "a{{ if not .Values.serviceAccount.create }}b{{ else }}c{{ end }}d",
            "acd",
            id="else is the other branch",
        ),
        pytest.param(
            "{{ with .Values.imagePullSecrets }}{{ range $s := . }}{{ $s }}{{ end }}x{{ end }}b",
            "b",
            id="unknown directives in a block that is off do not matter",
        ),
        pytest.param(
            "{{ if .Values.rbacManager.deploy -}}\n  a{{ end }}",
            "a",
            id="a trailing dash trims what follows",
        ),
        pytest.param(
            "{{ with .Values.imagePullSecrets }}{{ if .x }}{{ else }}y{{ end }}{{ end }}z",
            "z",
            id="an else inside a block that is off prints nothing",
        ),
    ],
)
def test_renders_what_helm_would(template: str, expected: str) -> None:
    assert chart.render(template) == expected


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{{ .Values.unheard }}", id="an unknown value"),
        pytest.param("{{ if .Values.unheard }}x{{ end }}", id="an unknown condition"),
        pytest.param("{{ end }}", id="an end without a block"),
        pytest.param("{{ if .Values.rbacManager.deploy }}x", id="a block that is not closed"),
    ],
)
def test_refuses_what_it_does_not_know(template: str) -> None:
    with pytest.raises(chart.ChartError):
        chart.render(template)


def test_documents_that_a_condition_empties_are_left_out(tmp_path: Path) -> None:
    for name in chart.RBAC_TEMPLATES:
        (tmp_path / name).write_text("---\n", encoding="utf-8")
    (tmp_path / "clusterrole.yaml").write_text("kind: A\n---\n---\nkind: B\n", encoding="utf-8")

    kinds = [item["kind"] for item in chart.rbac_objects(tmp_path)]

    assert kinds == ["A", "B"]
