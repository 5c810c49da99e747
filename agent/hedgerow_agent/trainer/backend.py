"""The backend of a run, opened and ready to bind plans, and how to name it to people."""

from collections.abc import Mapping
from dataclasses import dataclass

from hedgerow_agent.backends import BackendMissing, choose, threads
from hedgerow_agent.core.compilation import Backend, NumpyBackend
from hedgerow_agent.core.native.library import load
from hedgerow_agent.core.native.opening import Unavailable
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_agent.trainer.loading import Unfit
from hedgerow_plans.protocol.messages import BackendName


@dataclass(frozen=True, slots=True)
class Opened:
    """A backend, and what it is in words."""

    backend: Backend
    words: str


def open_backend(asked: BackendName | None, environ: Mapping[str, str]) -> Opened:
    """Return what computes for a job; raise Unfit where it asks for what is not here."""
    try:
        choice, most_threads = choose(asked, environ), threads(environ)
    except BackendMissing as missing:
        raise Unfit("BackendMissing", str(missing)) from None
    if choice.name == "numpy":
        return Opened(NumpyBackend(), " ".join(("numpy.", choice.remark)).strip())
    library = load()
    if isinstance(library, Unavailable):
        raise Unfit("BackendMissing", f"{library.reason}, and it could a moment ago; try again.")
    backend = NativeBackend(library, most_threads)
    return Opened(backend, _words(backend))


def _words(backend: NativeBackend) -> str:
    blas = backend.library.blas
    products = "its own code" if blas is None else f"numpy's BLAS ({blas.path.name})"
    count = "1 thread" if backend.threads == 1 else f"{backend.threads} threads"
    return f"native, for {backend.library.instruction_set}, on {count}; large products by {products}."
