"""The real helm with folders of its own: it neither sees nor changes the developer's repositories."""

from pathlib import Path

from provision.find import locate
from servers import environments
from servers.commands import Command


def runner(folder: Path, kubeconfig: Path | None = None) -> Command:
    """Give a helm whose home is in `folder`; without a kubeconfig it renders, and reaches no cluster."""
    homes = {f"HELM_{kind}_HOME": str(folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    config = kubeconfig if kubeconfig is not None else folder / "no-cluster"
    return Command(locate("helm").path, environments.clean(**homes, KUBECONFIG=str(config)))
