"""The table of programs: how each tells its version, which versions are good, where it comes from. Pure data.

A bundle is what is built or installed in one go and kept in one cache entry; a program belongs to one bundle.
To add one (nodes without kubelets, a clustered broker): a module under hack/go and a row in each table.
"""

from dataclasses import dataclass, field

from provision.versions import Accepted


@dataclass(frozen=True, slots=True)
class Program:
    """One executable; `answer` matches what it prints, with the version as group 1 where it tells one."""

    name: str
    bundle: str
    ask: tuple[str, ...]
    answer: str
    accepted: Accepted | None  # None: it tells no version, so that it runs is all that can be asked of it


@dataclass(frozen=True, slots=True)
class GoBundle:
    """A program built from a module under hack/go; `link` gives its version variables their values."""

    name: str
    module: str
    package: str
    version: str
    disk_mb: int  # what a cold build adds to Go's caches and ours: 4.9 GB for all, measured, and a quarter more
    link: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DebianBundle:
    """Programs of Debian packages; `services` must not run on the developer's machine because of us."""

    name: str
    packages: tuple[str, ...]
    services: tuple[str, ...] = field(default=())
    instead: str | None = None  # the bundle that serves when Debian's cannot be had


KUBERNETES = "1.34.4"
KUBERNETES_DATE = "2026-02-10T12:53:36Z"  # when the module was published: keeps builds reproducible
_KUBERNETES_LINK = tuple(
    (f"k8s.io/{library}/version.{variable}", value)
    for library in ("component-base", "client-go/pkg")
    for variable, value in (
        ("gitVersion", f"v{KUBERNETES}"),
        ("gitMajor", "1"),
        ("gitMinor", "34"),
        ("gitCommit", "published-module"),
        ("gitTreeState", "clean"),
        ("buildDate", KUBERNETES_DATE),
    )
)
# Helm judges a chart's kubeVersion by these when it has no cluster; they follow its client-go.
_HELM_LINK = (
    ("helm.sh/helm/v3/internal/version.version", "v3.22.0"),
    ("helm.sh/helm/v3/internal/version.gitTreeState", "clean"),
    *(
        (f"helm.sh/helm/v3/pkg/{package}.k8sVersion{part}", value)
        for package in ("lint/rules", "chartutil")
        for part, value in (("Major", "1"), ("Minor", "37"))
    ),
)


def _kubernetes(name: str, disk_mb: int) -> GoBundle:
    return GoBundle(name, "controlplane", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES, disk_mb, _KUBERNETES_LINK)


BUNDLES: dict[str, GoBundle | DebianBundle] = {
    bundle.name: bundle
    for bundle in (
        GoBundle("etcd", "controlplane", "go.etcd.io/etcd/server/v3", "3.6.6", 500),
        _kubernetes("kube-apiserver", 3200),
        _kubernetes("kube-controller-manager", 800),
        _kubernetes("kubectl", 400),
        GoBundle("helm", "helm", "helm.sh/helm/v3/cmd/helm", "3.22.0", 1200, _HELM_LINK),
        GoBundle("mochi", "broker", "github.com/mochi-mqtt/server/v2/cmd", "2.7.9", 100),
        DebianBundle("mosquitto", ("mosquitto", "mosquitto-clients"), ("mosquitto",), instead="mochi"),
        DebianBundle("prometheus", ("prometheus",), ("prometheus",)),
        DebianBundle("qemu-user", ("qemu-user",)),
        DebianBundle("gcc", ("gcc", "libc6-dev")),
    )
}

SYSROOTS = {
    "aarch64-linux-gnu": DebianBundle("libc6-arm64-cross", ("libc6-arm64-cross",)),
    "arm-linux-gnueabihf": DebianBundle("libc6-armhf-cross", ("libc6-armhf-cross",)),
}
"""The C libraries of other machines, by their names in /usr: what their programs need to run under qemu."""

_KUBERNETES_ACCEPTED = Accepted((1, 32, 0), (2, 0, 0))
_MOSQUITTO_ACCEPTED = Accepted((2, 0, 0), (3, 0, 0))
_PROMETHEUS_ACCEPTED = Accepted((2, 40, 0), (4, 0, 0))

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Program("etcd", "etcd", ("--version",), r"etcd Version: (\S+)", Accepted((3, 5, 0), (4, 0, 0))),
        *(
            Program(name, name, ("--version",), r"Kubernetes v(\S+)", _KUBERNETES_ACCEPTED)
            for name in ("kube-apiserver", "kube-controller-manager")
        ),
        Program("kubectl", "kubectl", ("version", "--client"), r"Client Version: v(\S+)", _KUBERNETES_ACCEPTED),
        Program("helm", "helm", ("version", "--short"), r"^v(\S+)", Accepted((3, 14, 0), (4, 0, 0))),
        Program("mosquitto", "mosquitto", ("-h",), r"mosquitto version (\S+)", _MOSQUITTO_ACCEPTED),
        *(
            Program(name, "mosquitto", ("--version",), rf"{name} version (\S+)", _MOSQUITTO_ACCEPTED)
            for name in ("mosquitto_pub", "mosquitto_sub")
        ),
        Program("mosquitto_passwd", "mosquitto", ("-h",), r"mosquitto_passwd is a tool", None),
        *(
            Program(name, "prometheus", ("--version",), rf"{name}, version (\S+)", _PROMETHEUS_ACCEPTED)
            for name in ("prometheus", "promtool")
        ),
        Program("gcc", "gcc", ("--version",), r"^gcc .*?(\d+\.\d+\.\d+)$", Accepted((9, 0, 0), (100, 0, 0))),
        *(
            Program(name, "qemu-user", ("--version",), rf"{name} version (\S+)", Accepted((6, 0, 0), (12, 0, 0)))
            for name in ("qemu-x86_64", "qemu-aarch64", "qemu-arm")
        ),
        Program("mochi", "mochi", ("-h",), r"network address for TCP listener", None),
    )
}

FALLBACKS = frozenset(bundle.instead for bundle in BUNDLES.values() if isinstance(bundle, DebianBundle))
"""Bundles obtained only when another cannot be had, or when asked for by name."""

USUAL = tuple(name for name, program in PROGRAMS.items() if program.bundle not in FALLBACKS)
"""What `hack/setup servers` makes sure of when no names are given."""


def programs_of(bundle: str) -> tuple[Program, ...]:
    """Return the programs a bundle brings."""
    return tuple(program for program in PROGRAMS.values() if program.bundle == bundle)
