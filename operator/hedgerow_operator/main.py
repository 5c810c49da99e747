"""Starts the operator: settings from the environment, kopf started by us, one clean way to end."""

import logging
import os
import sys
from pathlib import Path

import kopf
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hedgerow_operator.handlers import register
from hedgerow_operator.operating import Operator
from hedgerow_operator.settings import Settings, SettingsError, read_settings
from hedgerow_plans.protocol.keys import parse_private_key

LONGEST_LOG_MESSAGE = 2000


def main() -> int:
    """Run until told to stop; return the exit status."""
    try:
        settings = read_settings(os.environ)
        key = read_signing_key(settings.signing_key_file)
    except SettingsError as problem:
        print(f"hedgerow-operator: {problem}", file=sys.stderr)
        return 2
    configure_logging(settings)
    registry = kopf.OperatorRegistry()
    register(registry, Operator(settings, key))
    kopf.run(
        registry=registry,
        settings=kopf_settings(),
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
    )
    return 0


def read_signing_key(file: Path) -> Ed25519PrivateKey:
    """Return the operator's key from its file."""
    try:
        return parse_private_key(file.read_text(encoding="ascii"))
    except (OSError, ValueError) as problem:
        raise SettingsError(
            f"HEDGEROW_SIGNING_KEY_FILE names {file}, which holds no key ({problem}); "
            "make one with `hedgerow keys generate`."
        ) from problem


def kopf_settings() -> kopf.OperatorSettings:
    """Return how kopf should behave: our own names in the cluster, and watches that notice when they are dead."""
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = "hedgerow.dev/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="hedgerow.dev")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="hedgerow.dev")
    settings.posting.enabled = False
    settings.watching.server_timeout = 120
    settings.watching.client_timeout = 150
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = 70
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.process.ultimate_exiting_timeout = 25  # kubelet kills after 30
    return settings


class ShortMessages(logging.Filter):
    """Cuts what nobody can read: at exit kopf names every object it has not looked at in one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten a record in place, and let it pass."""
        text = record.getMessage()
        if len(text) > LONGEST_LOG_MESSAGE:
            record.msg, record.args = f"{text[:LONGEST_LOG_MESSAGE]}... ({len(text)} characters)", ()
        return True


def configure_logging(settings: Settings) -> None:
    """Log to stderr in the format asked for."""
    kopf.configure(log_format=kopf.LogFormat[settings.log_format.upper()])
    for handler in logging.getLogger().handlers:
        handler.addFilter(ShortMessages())
    for noisy in ("httpx", "httpx2", "httpcore", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)


if __name__ == "__main__":
    raise SystemExit(main())
