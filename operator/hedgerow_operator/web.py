"""The operator's HTTP side: /metrics for Prometheus, /healthz and /readyz for the kubelet.

It answers from the event loop that does the work, so that a loop that is stuck does not look healthy.
"""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from hedgerow_operator.health import Health

Check = Callable[[], None]


class WebServer:
    """Serves one or two ports; equal ports are served once."""

    def __init__(self, address: str, metrics_port: int, health_port: int) -> None:
        self._address = address
        self._ports = sorted({metrics_port, health_port})
        self._runner: web.AppRunner | None = None

    async def start(self, series: CollectorRegistry, health: Health, check: Check) -> None:
        """Begin to answer; `check` brings the health up to date first."""

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(body=generate_latest(series), headers={"Content-Type": CONTENT_TYPE_LATEST})

        async def healthz(_: web.Request) -> web.Response:
            check()
            return _answer(health.problems())

        async def readyz(_: web.Request) -> web.Response:
            check()
            problems = health.problems(at_once=True)
            return _answer(
                problems if health.is_ready else ["The first list of objects is not complete yet.", *problems]
            )

        application = web.Application()
        application.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        for port in self._ports:
            await web.TCPSite(self._runner, self._address, port).start()

    async def stop(self) -> None:
        """Stop answering."""
        if self._runner is not None:
            await self._runner.cleanup()


def _answer(problems: list[str]) -> web.Response:
    if problems:
        return web.Response(status=503, text="\n".join(problems) + "\n")
    return web.Response(text="ok\n")
