"""Prometheus is a real one: it scrapes what it is told to, and answers what it saw."""

from collections.abc import Iterator

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, Gauge

from servers.problems import ServerProblem
from servers.prometheus import Prometheus
from support.eventually import eventually
from support.server_fixtures import StartPrometheus

pytestmark = pytest.mark.prometheus


@pytest.fixture
def target() -> Iterator[str]:
    """The address of a tiny program that reports 21.5 degrees."""
    registry = CollectorRegistry()
    Gauge("shed_degrees", "How warm it is.", ["corner"], registry=registry).labels(corner="north").set(21.5)
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def scraping(prometheus: StartPrometheus, target: str) -> Prometheus:
    return prometheus({"shed": [target]})


def test_it_scrapes_a_target_and_answers_with_its_labels(scraping: Prometheus, target: str) -> None:
    samples = eventually(lambda: scraping.query("shed_degrees"), "the gauge is scraped")
    assert [sample.value for sample in samples] == [21.5]
    labels = samples[0].labels
    assert (labels["job"], labels["instance"], labels["corner"]) == ("shed", target, "north")
    assert scraping.query("scalar(shed_degrees) * 2")[0].value == 43

    scraping.scrape({"elsewhere": [target]})
    eventually(lambda: scraping.query('shed_degrees{job="elsewhere"}'), "the new targets are scraped")

    with pytest.raises(ServerProblem, match=r"refused the query 'sum\('"):
        scraping.query("sum(")
