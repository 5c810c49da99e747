"""Kubeconfig files: one for a control plane of ours, or a private copy of the one the developer names.

The developer names a cluster with HEDGEROW_TEST_KUBECONFIG or with KUBECONFIG, in this order;
HEDGEROW_TEST_KUBECONFIG set to nothing asks for a control plane of our own whatever KUBECONFIG says.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from servers.certificates import KeyPair
from servers.files import write_private

TEST_VARIABLE = "HEDGEROW_TEST_KUBECONFIG"
VARIABLE = "KUBECONFIG"


def named_by_the_developer(environment: Mapping[str, str] | None = None) -> str | None:
    """Give the kubeconfig the developer names (maybe a list of files), or None to start a control plane."""
    environment = os.environ if environment is None else environment
    return environment.get(TEST_VARIABLE, environment.get(VARIABLE)) or None


def write(path: Path, *, server: str, authority: Path, client: KeyPair) -> Path:
    """Write a kubeconfig that needs no other file, readable by its owner alone."""
    name = "hedgerow"
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    user = {
        "client-certificate-data": _base64(client.certificate),
        "client-key-data": _base64(client.key),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    return write_private(path, yaml.safe_dump(document, sort_keys=False))


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
