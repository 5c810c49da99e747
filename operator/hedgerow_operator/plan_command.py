"""`hedgerow plan`: the ladder that devices of a class would get, or a plan for a bare problem."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from hedgerow_operator import classes as catalogue
from hedgerow_operator import ladder_text, plan_pictures, tables
from hedgerow_operator.method_words import HELP, parse_method
from hedgerow_operator.mistakes import BadInput, NothingFits
from hedgerow_operator.planning import solver
from hedgerow_operator.planning.ladders import Means, plan_ladder
from hedgerow_operator.planning.requests import device_costs
from hedgerow_operator.planning.worker import Planned, Unusable
from hedgerow_plans import codec
from hedgerow_plans.extras import explain_missing_extra
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.planning.abstract import bare as bare_problems
from hedgerow_plans.planning.charts import chart_plan
from hedgerow_plans.program import ProgramRequest
from hedgerow_plans.resources.device_class import DeviceClass, FrozenWeights
from hedgerow_plans.training.optimizers import Sgd

LADDER_SECONDS = 600.0
_STRATEGIES = tuple(dict.fromkeys((*bare_problems.STRATEGIES, *solver.NAMES)))


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody would like to train."""

    model: str
    method: Method
    batch_size: int
    momentum: float
    classes: int | None
    input_shape: tuple[int, ...] | None

    def request(self, device_class: DeviceClass) -> ProgramRequest:
        """Return what is to be planned for a class of devices."""
        spec = device_class.spec
        return ProgramRequest(
            model=self.model,
            method=self.method,
            optimizer=Sgd(self.momentum),
            batch_size=self.batch_size,
            device_class=device_class.metadata.name,
            costs=device_costs(spec),
            budget_bytes=spec.budget_bytes,
            floor_bytes=spec.floor_bytes,
            classes=self.classes,
            input_shape=self.input_shape,
            frozen_outside=spec.memory.frozen_weights is FrozenWeights.MAPPED,
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to do with a ladder that was planned."""

    as_json: bool
    out: Path | None
    plot: Path | None
    rung: int  # people count from 1


@click.command()
@click.argument("problem", required=False, type=click.Path(path_type=Path))
@click.option("--model", help="A name that `hedgerow models` lists.")
@click.option("--method", default="full", show_default=True, help=f"{HELP}.")
@click.option("--class", "class_name", help="A device class that `hedgerow classes` lists.")
@click.option("--class-file", type=click.Path(path_type=Path), help="A DeviceClass manifest (YAML) instead.")
@click.option("--batch", "batch_size", default=32, show_default=True, type=click.IntRange(1, 65_536))
@click.option("--budget", help="Plan for this much memory instead of the class's, such as 64Ki; of a problem: bytes.")
@click.option("--deadline-factor", type=click.FloatRange(0), help="Of a problem: the most time, in times of keep-all.")
@click.option("--techniques", default="recompute,page", show_default=True, help="Of a problem: what may be used.")
@click.option("--strategy", type=click.Choice(_STRATEGIES), help="Who plans; by default all, optimal last.")
@click.option(
    "--time-limit", "seconds", type=click.FloatRange(0, min_open=True), help="Seconds; the best so far is kept."
)
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default as many as there are cores.")
@click.option("--fresh", is_flag=True, help="Plan again what was planned before.")
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Write the program that `hedgerow-agent train` runs.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw memory over steps into NAME.png or NAME.svg.")
@click.option("--rung", default=1, show_default=True, type=click.IntRange(1), help="Which rung --plot draws.")
@click.option("--classes", type=click.IntRange(2), help="How many classes it tells apart, if not the model's own.")
@click.option("--shape", help="Shape of one sample, such as 1,28,28, if not the model's own.")
@click.option("--momentum", default=0.0, show_default=True, type=click.FloatRange(0, 1, max_open=True))
def plan(  # noqa: PLR0917 - click passes one argument per option
    problem: Path | None,
    model: str | None,
    method: str,
    class_name: str | None,
    class_file: Path | None,
    batch_size: int,
    budget: str | None,
    deadline_factor: float | None,
    techniques: str,
    strategy: str | None,
    seconds: float | None,
    jobs: int | None,
    fresh: bool,
    output: str,
    out: Path | None,
    plot: Path | None,
    rung: int,
    classes: int | None,
    shape: str | None,
    momentum: float,
) -> None:
    """Show the ladder of plans that devices of a class would get, or plan the bare PROBLEM in a JSON file.

    A ladder that was planned before is read from ~/.cache/hedgerow/plans (or HEDGEROW_CACHE), if it still verifies.
    """
    if problem is not None:
        if budget is None:
            raise click.UsageError("A problem needs --budget BYTES.")
        try:
            from hedgerow_operator import bare_command  # noqa: PLC0415 - the solver is an extra of its own
        except ModuleNotFoundError as missing:
            raise _needs_solver(missing) from None
        name = strategy or bare_problems.OPTIMAL
        asked = bare_command.request_from(budget, deadline_factor, techniques, name, seconds)
        raise SystemExit(bare_command.run(problem, asked, plot, as_json=output == "json"))
    if model is None:
        raise click.UsageError("Give a PROBLEM file, or --model and --class or --class-file.")
    if strategy is not None and strategy not in solver.NAMES:
        raise click.UsageError(f"{strategy!r} plans no models; choose one of {', '.join(solver.NAMES)}.")
    device_class = _chosen_class(class_name, class_file, budget)
    input_shape = None if shape is None else tables.parse_shape(shape)
    wish = Wish(model, parse_method(method), batch_size, momentum, classes, input_shape)
    means = Means(strategy, seconds or LADDER_SECONDS, jobs or os.cpu_count() or 1, None if fresh else memo_folder())
    _show(wish.request(device_class), device_class, means, Wanted(output == "json", out, plot, rung))


def memo_folder() -> Path:
    """Return where ladders are kept."""
    return Path(os.environ.get("HEDGEROW_CACHE") or Path.home() / ".cache" / "hedgerow") / "plans"


def _show(request: ProgramRequest, device_class: DeviceClass, means: Means, wanted: Wanted) -> None:
    if means.strategy is None and not solver.solver():
        click.echo(solver.ABSENT, err=True)
    try:
        outcome = plan_ladder(request, means, _progress)
    except ModuleNotFoundError as missing:
        raise _needs_solver(missing) from None
    if isinstance(outcome, Unusable):
        raise click.ClickException(outcome.message) if outcome.is_our_fault else BadInput(outcome.message)
    if not isinstance(outcome, Planned):
        if wanted.as_json:
            click.echo(ladder_text.refusal_as_json(outcome))
        raise NothingFits(ladder_text.refusal(outcome, device_class))
    _write_files(outcome, request.budget_bytes, wanted)
    click.echo(ladder_text.as_json(outcome) if wanted.as_json else ladder_text.as_table(outcome))


def _write_files(planned: Planned, budget_bytes: int, wanted: Wanted) -> None:
    if wanted.plot is not None:
        program = codec.decode(planned.encoded)
        if wanted.rung > len(program.rungs):
            raise BadInput(f"There is no rung {wanted.rung}; the ladder has 1 to {len(program.rungs)}.")
        chart = chart_plan(program, program.rungs[wanted.rung - 1], budget_bytes)
        plan_pictures.write(chart, wanted.plot)
    if wanted.out is not None:
        try:
            wanted.out.write_bytes(planned.encoded)
        except OSError as problem:
            raise BadInput(f"{wanted.out} cannot be written: {problem.strerror}.") from problem


def _needs_solver(missing: ModuleNotFoundError) -> click.ClickException:
    return click.ClickException(explain_missing_extra("hedgerow plan", solver.EXTRA, missing.name or ""))


def _progress(done: int, count: int) -> None:
    """Show on a terminal how many searches are done."""
    if sys.stderr.isatty() and count:
        end = "\r\033[K" if done == count else ""
        click.echo(f"\rsearching: {done} of {count} micro-batch sizes   {end}", err=True, nl=False)


def _chosen_class(name: str | None, file: Path | None, budget: str | None) -> DeviceClass:
    if file is not None and name is None:
        return tables.read_device_class(file, budget)
    if name is not None and file is None:
        return tables.with_budget(catalogue.body(name), budget)
    raise click.UsageError("Give --class with a name that `hedgerow classes` lists, or --class-file with a manifest.")
