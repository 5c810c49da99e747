"""Charts of plans: every byte of the promise is in the picture, and every step that costs extra is marked."""

from dataclasses import replace

from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.plan import PageIn, PageOut, Program, Recompute
from hedgerow_plans.planning.charts import Kind, Mark, chart_plan
from hedgerow_plans.planning.strategies import optimal
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd

REQUEST = ProgramRequest(
    model="cnn-small",
    method=Full(),
    optimizer=Sgd(0.9),
    batch_size=4,
    device_class="board",
    costs=DeviceCosts(10**9, 100, 10**7, 10**7, 500, 500),
    budget_bytes=10**7,
    input_shape=(1, 14, 14),
)


def test_the_chart_of_every_rung_ends_at_its_peak_and_marks_what_costs_extra() -> None:
    program = build_program(REQUEST, searching=[optimal.plan])
    assert isinstance(program, Program)
    kinds = set[Kind]()
    for rung in program.rungs:
        chart = chart_plan(program, rung, REQUEST.budget_bytes)
        tops = [block.offset + block.bytes for block in chart.blocks]
        assert max(tops) == rung.promise.peak_bytes == chart.peak_bytes
        assert max(chart.live_bytes()) <= chart.peak_bytes
        wanted = {Mark.RECOMPUTE: Recompute, Mark.PAGE_OUT: PageOut, Mark.PAGE_IN: PageIn}
        steps = [step for section in rung.sections() for step in section]
        for mark, kind in wanted.items():
            assert sum(what is mark for _, what in chart.marks) == sum(isinstance(step, kind) for step in steps)
        assert all(0 <= block.first < block.end <= chart.steps for block in chart.blocks)
        kinds |= {block.kind for block in chart.blocks}
    assert kinds == set(Kind)


def test_the_title_says_what_is_drawn() -> None:
    program = build_program(replace(REQUEST, batch_size=1))
    assert isinstance(program, Program)
    assert chart_plan(program, program.rungs[0], 1).title == (
        f"cnn-small by full on board: {program.rungs[0].strategy}, micro-batch 1 of 1"
    )
