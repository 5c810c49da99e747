"""`hedgerow plan problem.json`: plans for graphs of other frameworks, on the terminal or as JSON."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click

from hedgerow_operator import plan_pictures
from hedgerow_operator.mistakes import BadInput
from hedgerow_operator.planning import bare
from hedgerow_plans.bare import BadProblem
from hedgerow_plans.planning.abstract.bare import STRATEGIES, TECHNIQUES
from hedgerow_plans.planning.charts import chart_bare
from hedgerow_plans.planning.optimal.search import Standing
from hedgerow_plans.resources.quantities import parse_quantity

INFEASIBLE = 3


def run(file: Path, request: bare.Request, plot: Path | None, *, as_json: bool) -> int:
    """Plan the problem in a file, print what came out, draw it if asked, and return the exit code."""
    try:
        problem = bare.read_problem(file)
        result = bare.plan_bare(problem, request, _progress())
    except BadProblem as mistake:
        raise BadInput(str(mistake)) from None
    if plot and isinstance(result, bare.BarePlan):
        title = f"{problem.name or file.name}: {request.strategy}"
        plan_pictures.write(chart_bare(title, problem, result.steps, request.budget_bytes), plot)
    if as_json:
        click.echo(json.dumps(result.document()))
    elif isinstance(result, bare.BarePlan):
        click.echo(_summary(problem.name or file.name, result))
    else:
        click.echo(f"{result.reason} Proven floor: {result.floor_bytes} bytes.", err=True)
    return 0 if isinstance(result, bare.BarePlan) else INFEASIBLE


def request_from(
    budget: str, deadline_factor: float | None, techniques: str, strategy: str, limit_seconds: float | None
) -> bare.Request:
    """Return what the options ask for; raise click.UsageError with a sentence."""
    if strategy not in STRATEGIES:
        raise click.UsageError(f"{strategy!r} plans no bare problems; choose one of {', '.join(STRATEGIES)}.")
    chosen = frozenset(word.strip() for word in techniques.split(",") if word.strip())
    if not chosen <= TECHNIQUES:
        raise click.UsageError(f"{techniques!r} names unknown techniques; write {', '.join(sorted(TECHNIQUES))}.")
    try:
        budget_bytes = int(parse_quantity(budget))
    except ValueError as problem:
        raise click.UsageError(f"--budget {budget!r} is no number of bytes: {problem}") from None
    seconds = bare.DEFAULT_TIME_LIMIT_SECONDS if limit_seconds is None else limit_seconds
    return bare.Request(budget_bytes, deadline_factor, chosen, strategy, seconds)


def _summary(name: str, plan: bare.BarePlan) -> str:
    counts = {kind: sum(step[0] == kind for step in plan.steps) for kind in ("compute", "page_out", "page_in")}
    overhead = 100 * (plan.cost - plan.no_overhead_cost) / plan.no_overhead_cost if plan.no_overhead_cost else 0.0
    nodes = len({node for kind, node in plan.steps if kind == "compute"})
    lines = (
        f"{name}: cost {plan.cost} ({overhead:.4f} % over keep-all), peak {plan.peak_bytes} bytes",
        f"proven bound {plan.bound}: gap {100 * plan.gap:.4f} %, of the overhead {100 * plan.overhead_gap:.2f} %",
        (
            f"{counts['compute'] - nodes} recomputations, {counts['page_out']} page-outs, "
            f"{counts['page_in']} page-ins, planned in {plan.seconds:.2f} s"
        ),
    )
    return "\n".join(lines)


def _progress() -> Callable[[Standing], None]:
    """Return what shows bound and gap on a terminal while the search goes on, and nothing elsewhere."""

    def show(standing: Standing) -> None:
        cost = "none yet" if standing.cost is None else str(standing.cost)
        click.echo(f"\rplan {cost}   bound {standing.bound}   gap {100 * standing.gap:.4f} %   ", err=True, nl=False)

    return show if sys.stderr.isatty() else lambda _standing: None
