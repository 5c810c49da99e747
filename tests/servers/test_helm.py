"""Helm is the real one, and keeps away from the developer's own folders."""

from pathlib import Path

import pytest

from servers.commands import Command
from servers.problems import ServerProblem

pytestmark = pytest.mark.helm


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text("greeting: hello\n")
    (folder / "templates/config.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"
        "data:\n  greeting: {{ required `greeting must be set` .Values.greeting }}\n"
    )
    return folder


def test_it_says_its_version(helm: Command) -> None:
    assert helm("version", "--short").stdout.startswith("v3.")


def test_it_renders_a_chart_with_values(helm: Command, chart: Path) -> None:
    rendered = helm("template", "barn", chart, "--set", "greeting=moo").stdout
    assert "name: barn" in rendered
    assert "greeting: moo" in rendered


def test_a_chart_that_cannot_be_rendered_is_a_problem_with_helms_words(helm: Command, chart: Path) -> None:
    with pytest.raises(ServerProblem, match="greeting must be set"):
        helm("template", "barn", chart, "--set", "greeting=")


def test_its_folders_are_its_own(helm: Command) -> None:
    home = helm("env", "HELM_DATA_HOME").stdout.strip()
    assert Path(home).is_relative_to(helm.environment["HELM_DATA_HOME"])
    assert not Path(home).is_relative_to(Path.home() / ".local")


@pytest.mark.cluster
def test_it_installs_into_the_control_plane(
    cluster_helm: Command, kubectl: Command, namespace: str, chart: Path
) -> None:
    cluster_helm("install", "barn", chart, "-n", namespace)
    greeting = kubectl("get", "configmap", "barn", "-n", namespace, "-o", "jsonpath={.data.greeting}").stdout
    assert greeting == "hello"
    cluster_helm("uninstall", "barn", "-n", namespace)
