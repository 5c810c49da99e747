"""What a plan says about the columns of the relaxation: a warm start, and the proof that no row cuts off a plan."""

from collections.abc import Sequence

from hedgerow_plans.planning.optimal.relaxation import Relaxation


def point(relaxation: Relaxation, codes: Sequence[int]) -> list[int]:
    """Return the value of every column under a plan."""
    work = relaxation.work
    values = [0] * len(relaxation.model.costs)
    steps, ran = _steps(codes, work.nodes)
    for tensor, birth, end in _lives(relaxation, codes):
        stage = relaxation.stage[min(steps[birth], work.nodes - 1)]
        if birth != ran[work.maker[tensor]]:
            _refresh(relaxation, values, codes[birth], tensor, stage)
        for later in relaxation.stages_of(tensor)[1:]:
            if birth <= ran[relaxation.borders[later] - 1] < end:
                values[relaxation.stay[tensor, later]] = 1
    for (tensor, stage), column in relaxation.through.items():
        brought = sum(values[other] for other in relaxation.refreshes(tensor, stage))
        values[column] = max(0, values[relaxation.stay[tensor, stage + 1]] - brought)
    return values


def _refresh(relaxation: Relaxation, values: list[int], code: int, tensor: int, stage: int) -> None:
    column = relaxation.again.get((code, stage)) if code >= 0 else relaxation.fetch.get((tensor, stage))
    if column is not None:
        values[column] = 1
    if code < 0 and tensor in relaxation.out:
        values[relaxation.out[tensor]] = 1


def _steps(codes: Sequence[int], nodes: int) -> tuple[list[int], list[int]]:
    """Return, by position, the step it comes before or is; by node, the position of its first run."""
    ran = [-1] * nodes
    for position, code in enumerate(codes):
        if code >= 0 and ran[code] < 0:
            ran[code] = position
    steps, step = [nodes] * len(codes), nodes
    for position in range(len(codes) - 1, -1, -1):
        code = codes[position]
        if code >= 0 and ran[code] == position:
            step = code
        steps[position] = step
    return steps, ran


def _lives(relaxation: Relaxation, codes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (tensor, position of birth, position of last use) of every life of the modelled tensors."""
    work, current = relaxation.work, dict[int, int]()
    lives: list[tuple[int, int, int]] = []
    for position, code in enumerate(codes):
        for tensor in work.reads[code] if code >= 0 else ():
            life = current[tensor]
            lives[life] = (tensor, lives[life][1], position)
        for tensor in work.makes[code] if code >= 0 else (~code,):
            current[tensor] = len(lives)
            lives.append((tensor, position, position))
    return [life for life in lives if relaxation.modelled[life[0]]]


def violated(relaxation: Relaxation, values: Sequence[int]) -> list[str]:
    """Return the kinds of the rows that a point does not satisfy."""
    return [
        row.kind
        for row in relaxation.model.rows
        if sum(values[column] * factor for column, factor in row.terms) > row.most
    ]


def overhead(relaxation: Relaxation, values: Sequence[int]) -> int:
    """Return what the relaxation charges for a point."""
    return sum(value * cost for value, cost in zip(values, relaxation.model.costs, strict=True))
