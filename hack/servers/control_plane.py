"""A real Kubernetes control plane: etcd, kube-apiserver and, where wanted, kube-controller-manager.

There are no nodes: Pods stay Pending. RBAC is on, clients authenticate with certificates of an authority made
for this control plane alone. The controller-manager brings garbage collection, the end of deleted namespaces,
Deployments and Jobs.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from provision.find import locate
from servers import certificates, environments, etcd, kubeconfig, ports, processes, web
from servers.certificates import Authority, KeyPair
from servers.commands import Command
from servers.files import write_private
from servers.ports import LOOPBACK
from servers.problems import ServerProblem
from servers.processes import Process
from servers.saying import Say, quiet

# Nothing in a throwaway control plane is worth waiting for; etcd syncs nothing either.
_GRACE_SECONDS = 2.0
# Go's collector takes a quarter of what kube-apiserver computes while it starts, and memory is there.
_SELDOM_TIDIED = {"GOGC": "400"}
_SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A cluster to talk to: its kubeconfig, and a kubectl that uses it."""

    kubeconfig: Path
    kubectl: Command
    processes: tuple[Process, ...]  # empty when the cluster is the developer's


@contextmanager
def start_or_use(folder: Path, *, say: Say = quiet) -> Iterator[ControlPlane]:
    """Give the cluster the developer names if one is named, else a whole control plane in `folder`."""
    named = kubeconfig.named_by_the_developer()
    if named is not None:
        yield use(folder, named, say=say)
        return
    with start(folder, say=say) as control_plane:
        yield control_plane


def use(folder: Path, named: str, *, say: Say = quiet) -> ControlPlane:
    """Give a cluster that is there already, through a private copy of its kubeconfig; nothing is started."""
    missing = [file for file in named.split(os.pathsep) if not Path(file).is_file()]
    if missing:
        remedy = f"correct it, or set {kubeconfig.TEST_VARIABLE} to nothing to have a cluster started for you."
        raise ServerProblem(f"The kubeconfig {missing[0]} that the environment names is no file; {remedy}")
    theirs = Command(locate("kubectl").path, environments.clean(KUBECONFIG=named, KUBECACHEDIR=str(folder / "cache")))
    text = theirs("config", "view", "--raw", "--flatten", "--minify").stdout
    control_plane = _control_plane(write_private(folder / "kubeconfig", text), ())
    answer = control_plane.kubectl("get", "--raw", "/readyz", check=False)
    if answer.returncode != 0:
        remedy = f"start that cluster, or set {kubeconfig.TEST_VARIABLE} to nothing to have one started for you."
        raise ServerProblem(f"The cluster of {named} is not ready ({answer.stderr.strip()}); {remedy}")
    say(f"Using the cluster of {named}.")
    return control_plane


@contextmanager
def start(
    folder: Path, *, controller_manager: bool = True, port: int | None = None, say: Say = quiet
) -> Iterator[ControlPlane]:
    """Run a control plane in `folder` while the context lasts."""
    authority = Authority(folder)
    signing_key = certificates.service_account_key(folder)
    admin = authority.client("admin", "system:masters")
    with ExitStack() as stack:
        store = stack.enter_context(etcd.start(folder, say=say))
        say("Starting kube-apiserver.")
        launch = _ApiServerLaunch(folder, authority, signing_key, admin, store.url, controller_manager)
        api_server, api_port = ports.on_port(port, "kube-apiserver", launch)
        stack.callback(api_server.stop)
        config = kubeconfig.write(
            folder / "kubeconfig",
            server=f"https://{LOOPBACK}:{api_port}",
            authority=authority.certificate,
            client=admin,
        )
        started = [store.process, api_server]
        if controller_manager:
            say("Starting kube-controller-manager.")
            manager = ports.on_free_ports(
                1, lambda free: _launch_controller_manager(folder, authority, signing_key, config, *free)
            )
            stack.callback(manager.stop)
            started.append(manager)
        yield _control_plane(config, tuple(started))


def _control_plane(config: Path, started: tuple[Process, ...]) -> ControlPlane:
    # A cache of its own: kubectl's would remember another cluster's CRDs for the same address.
    environment = environments.clean(KUBECONFIG=str(config), KUBECACHEDIR=str(config.parent / "kubectl-cache"))
    return ControlPlane(config, Command(locate("kubectl").path, environment), started)


@dataclass(frozen=True, slots=True)
class _ApiServerLaunch:
    folder: Path
    authority: Authority
    signing_key: Path
    admin: KeyPair
    etcd_url: str
    service_accounts: bool  # their default account per namespace is made by the controller-manager

    def __call__(self, port: int) -> tuple[Process, int]:
        """Start kube-apiserver on `port` and wait until it is ready."""
        tls = ssl.create_default_context(cafile=str(self.authority.certificate))
        tls.load_cert_chain(self.admin.certificate, self.admin.key)
        process = _started("kube-apiserver", self._options(port), self.folder)
        process.wait_until_ready(lambda: web.is_ok(port, "/readyz", tls), port=port)
        return process, port

    def _options(self, port: int) -> list[str]:
        serving = self.authority.server("kube-apiserver")
        options = [
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            "--endpoint-reconciler-type=none",  # loopback is no legal endpoint, and nobody looks for one
            f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={_SERVICE_ACCOUNT_ISSUER}",
            f"--service-account-key-file={self.signing_key}",
            f"--service-account-signing-key-file={self.signing_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--shutdown-delay-duration=0s",
        ]
        return options if self.service_accounts else [*options, "--disable-admission-plugins=ServiceAccount"]


def _launch_controller_manager(
    folder: Path, authority: Authority, signing_key: Path, config: Path, port: int
) -> Process:
    serving = authority.server("kube-controller-manager")
    options = [
        f"--kubeconfig={config}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--leader-elect=false",
        "--use-service-account-credentials=false",
        f"--service-account-private-key-file={signing_key}",
        f"--root-ca-file={authority.certificate}",
        # Nothing here has nodes or clouds; fewer controllers start faster.
        "--controllers=*,-node-lifecycle-controller,-node-ipam-controller,-node-route-controller",
    ]
    process = _started("kube-controller-manager", options, folder)
    tls = ssl.create_default_context(cafile=str(authority.certificate))
    process.wait_until_ready(lambda: web.is_ok(port, "/healthz", tls), port=port)
    return process


def _started(name: str, options: list[str], folder: Path) -> Process:
    log = folder / f"{name}.log"
    return processes.start(
        name, locate(name).path, options, log, grace_seconds=_GRACE_SECONDS, environment=_SELDOM_TIDIED
    )
