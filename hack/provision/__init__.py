"""Obtains what development and tests need on a bare machine: the venv, and real server binaries.

Standard library only, because it runs before any venv exists; `hack/setup` is its command line. It starts no
server: that is the work of `hack/servers`, which needs a few names of this package.

    from provision.find import locate, locate_broker
    from provision.ensure import ensure
    from provision.problems import Problem

    locate("kube-apiserver")    -> Binary(name, path, version, source); when absent Problem, one sentence
    locate_broker()             -> mosquitto where it is to be had, else the Go broker `mochi` (look at .name)
    ensure(["etcd", "helm"])    -> the same Binaries, built or installed first where needed (may take minutes)

`locate` builds nothing and is quick enough for a fixture. Names: see `programs.PROGRAMS`.
"""
