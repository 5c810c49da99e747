"""The command line of the device: run, train, predict, doctor."""

import argparse
import json
import logging
import os
import signal
import sys
from pathlib import Path

from hedgerow_agent.config import AgentConfig, ConfigError, load_config
from hedgerow_agent.local import command
from hedgerow_agent.version import agent_version

_EXAMPLES = """\
examples:
  hedgerow-agent doctor  --config agent.toml                    is everything there that a device needs?
  hedgerow-agent run     --config agent.toml                    connect and do what the operator wants
  hedgerow-agent predict --config agent.toml --input probe.npz  what does the device's model say?
  hedgerow-agent train job.yaml --data camera.npz               one job on this machine, without a cluster
"""

EXIT_PROBLEM = 1
EXIT_USAGE = 2


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    if not hasattr(options, "config"):
        return _train(options)
    try:
        config = load_config(options.config)
    except ConfigError as error:
        _complain(str(error))
        return EXIT_USAGE
    exit_code: int = options.command(config, options)
    return exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hedgerow-agent",
        description="Trains models on this device, on its own data, inside hard memory budgets.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hedgerow-agent {agent_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = _command(commands, "run", _run, "connect to the broker and do what the operator wants, until stopped")
    run.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    predict = _command(commands, "predict", _predict, "predict the classes of samples with what the device runs now")
    predict.add_argument("--input", type=Path, required=True, metavar="FILE", help="npz with x, and y if known")
    predict.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")
    train = commands.add_parser(
        "train",
        help="run one job on this machine, without operator and broker",
        description=command.DESCRIPTION,
        epilog=command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_options(train)
    train.set_defaults(command=_train)
    _command(commands, "doctor", _doctor, "look at everything the agent needs and say what is missing")
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, function: object, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the device's TOML file")
    parser.set_defaults(command=function)
    return parser


def _run(config: AgentConfig, options: argparse.Namespace) -> int:
    from hedgerow_agent.agent import Agent  # noqa: PLC0415 - the other commands need no MQTT

    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    agent = Agent(config)
    if config.metrics is not None:
        from hedgerow_agent.metrics import serve_metrics  # noqa: PLC0415 - costs memory only where it is wanted

        _server, port = serve_metrics(config.metrics, lambda: agent.state)
        logging.getLogger(__name__).info("Metrics on http://%s:%d/metrics", config.metrics.address, port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    agent.run()
    return 0


def _train(options: argparse.Namespace) -> int:
    # Before numpy is imported: results must not depend on how many cores there are.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return command.run(options)


def _predict(config: AgentConfig, options: argparse.Namespace) -> int:
    from hedgerow_agent.predict import CannotPredict, predict  # noqa: PLC0415 - numpy comes with it

    try:
        prediction = predict(config, options.input)
    except CannotPredict as error:
        _complain(str(error))
        return EXIT_PROBLEM
    if options.output == "json":
        document = {
            "running": prediction.running,
            "accuracy": prediction.accuracy,
            "predictions": prediction.classes,
        }
        _print(json.dumps(document))
        return 0
    _print(f"running:  {prediction.running}")
    if prediction.accuracy is not None:
        _print(f"accuracy: {prediction.accuracy:.4f}")
    _print("classes:  " + " ".join(str(one) for one in prediction.classes))
    return 0


def _doctor(config: AgentConfig, _options: argparse.Namespace) -> int:
    from hedgerow_agent.doctor import examine  # noqa: PLC0415

    findings = list(examine(config))
    for finding in findings:
        _print(f"{'ok     ' if finding.well else 'PROBLEM'} {finding.subject}: {finding.message}")
    return 0 if all(finding.well for finding in findings) else EXIT_PROBLEM


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")
