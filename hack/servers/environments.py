"""The environment a server or a command gets: the developer's, without what would steer it away from ours."""

import os

# Each of these programs reads settings from variables as well as from its command line.
_STEERING = ("ETCD_", "HELM_", "KUBECONFIG", "KUBECACHEDIR", "KUBERNETES_", "PROMETHEUS_")


def clean(**additions: str) -> dict[str, str]:
    """Give the current environment without variables that steer these programs, plus `additions`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_STEERING)}
    return kept | additions
