"""What learning from a stream begins with; whatever of it does not fit is a problem in a sentence."""

import os
from argparse import Namespace
from pathlib import Path

from hedgerow_agent.core.data.augmentation import parse as parse_augmentation
from hedgerow_agent.core.data.streams import Windows
from hedgerow_agent.core.errors import BadInput, CoreError
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.local.problems import Problem
from hedgerow_agent.trainer.backend import Opened, open_backend
from hedgerow_agent.trainer.loading import Unfit, load_weights
from hedgerow_agent.trainer.protocol import Start
from hedgerow_plans.plan import Program


def windows_of(executor: Executor, options: Namespace) -> Windows:
    """Return the windows that a stream is cut into."""
    try:
        return Windows(executor.samples, options.window or 1, options.hop)
    except BadInput as error:
        raise Problem(str(error)) from None


def opened_for(start: Start) -> Opened:
    """Return the backend that computes."""
    try:
        return open_backend(start.backend, os.environ)
    except Unfit as error:
        raise Problem(str(error)) from None


def executor_for(start: Start, program: Program, rung: int, opened: Opened) -> Executor:
    """Return the model of a run, with the parameters that it starts from."""
    try:
        weights = load_weights(Path(start.weights_file) if start.weights_file else None, start.weights_sha256)
        executor = Executor(program, weights, start.seed, rung, Path(start.folder), backend=opened.backend)
        executor.augment = parse_augmentation(start.augment, executor.samples)
    except (Unfit, CoreError) as error:
        raise Problem(str(error)) from None
    return executor
