"""What holds for any forward graph under any method: checked on generated ones."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.graph.ir import Graph, Node, Role, Section
from hedgerow_plans.graph.validate import problems
from hedgerow_plans.methods.adapted import Adapted
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.random_graphs import METHODS, adapted_graphs, applied, forward_graphs

MANY = settings(max_examples=100, deadline=None)  # a shared machine may pause any example

OPTIMIZERS = st.sampled_from([Sgd(), Sgd(momentum=0.9), Sgd(momentum=0.5, weight_decay=0.01)])


def depends_on_trainable(adapted: Adapted) -> set[str]:
    found = set(adapted.delta)
    for node in adapted.graph.nodes:
        if found & set(node.inputs):
            found |= set(node.outputs)
    return found


def makers_of(graph: Graph) -> dict[str, list[int]]:
    makers: dict[str, list[int]] = {}
    for position, node in enumerate(graph.nodes):
        for name in node.outputs:
            makers.setdefault(name, []).append(position)
    return makers


def training_graphs(adapted: Adapted, optimizer: Sgd) -> tuple[Graph, Graph, Graph]:
    """All generated parameters reach the logits, so differentiating must not refuse."""
    graphs = differentiate(adapted.graph, optimizer, batch_size=8)
    return graphs.direct, graphs.accumulating, graphs.evaluate


def is_update(node: Node) -> bool:
    return node.op == "sgd"


@MANY
@given(forward_graphs())
def test_a_generated_graph_is_valid(graph: Graph) -> None:
    assert list(problems(graph)) == []


@MANY
@given(forward_graphs(), METHODS)
def test_a_method_keeps_the_graph_valid_and_the_base_parameters_as_they_are(graph: Graph, method: Method) -> None:
    adapted = applied(method, graph)
    assert list(problems(adapted.graph)) == []
    after = {tensor.name: (tensor.shape, tensor.dtype, tensor.init) for tensor in adapted.graph.resident()}
    before = {tensor.name: (tensor.shape, tensor.dtype, tensor.init) for tensor in graph.resident()}
    assert before.items() <= after.items()
    trained = {tensor.name for tensor in adapted.graph.tensors if tensor.role is Role.TRAINABLE}
    assert trained == set(adapted.delta)
    assert trained


@MANY
@given(adapted_graphs(), OPTIMIZERS)
def test_every_tensor_is_made_once_before_it_is_read(adapted: Adapted, optimizer: Sgd) -> None:
    for graph in training_graphs(adapted, optimizer):
        assert list(problems(graph)) == []
        makers, resident = makers_of(graph), {tensor.name for tensor in graph.resident()}
        for tensor in graph.tensors:
            assert len(makers.get(tensor.name, [])) == (0 if tensor.resident else 1)
        for position, node in enumerate(graph.nodes):
            for name in node.reads:
                assert name in resident or makers[name][0] < position


@MANY
@given(adapted_graphs(), OPTIMIZERS)
def test_each_trainable_tensor_is_updated_once_after_every_reader(adapted: Adapted, optimizer: Sgd) -> None:
    direct, accumulating, evaluate = training_graphs(adapted, optimizer)
    for graph in (direct, accumulating):
        updated = [node.updates[0] for node in graph.nodes if is_update(node)]
        assert sorted(updated) == sorted(adapted.delta)
        for position, node in enumerate(graph.nodes):
            if is_update(node):
                later = graph.nodes[position + 1 :]
                assert not any(set(node.updates) & set(other.reads) for other in later)
    assert all(node.section is Section.BODY for node in direct.nodes)
    assert all(node.section is Section.FINISH for node in accumulating.nodes if is_update(node))
    assert not any(node.updates for node in evaluate.nodes)


@MANY
@given(adapted_graphs(), OPTIMIZERS)
def test_an_update_waits_for_nothing_but_its_gradient_and_its_readers(adapted: Adapted, optimizer: Sgd) -> None:
    direct, _, _ = training_graphs(adapted, optimizer)
    for position, node in enumerate(direct.nodes):
        if not is_update(node):
            continue
        before = direct.nodes[:position]
        ready = max(
            at
            for at, other in enumerate(before)
            if node.inputs[0] in other.outputs or (node.updates[0] in other.reads and not is_update(other))
        )
        assert all(is_update(other) for other in before[ready + 1 :])


@MANY
@given(adapted_graphs(), OPTIMIZERS)
def test_only_what_depends_on_a_trainable_tensor_is_differentiated(adapted: Adapted, optimizer: Sgd) -> None:
    wanted = depends_on_trainable(adapted)
    direct, _, evaluate = training_graphs(adapted, optimizer)
    for tensor in direct.tensors:
        for prefix in ("grad.", "mask.", "index."):
            if tensor.name.startswith(prefix):
                subject = tensor.name.removeprefix(prefix).split(".from.")[0].split(".sum.")[0]
                assert subject in wanted
    assert not any(len(node.outputs) > 1 for node in evaluate.nodes)


@MANY
@given(adapted_graphs(), OPTIMIZERS)
def test_nothing_is_computed_that_nobody_reads(adapted: Adapted, optimizer: Sgd) -> None:
    for graph in training_graphs(adapted, optimizer):
        read = {name for node in graph.nodes for name in node.reads} | set(graph.outputs)
        for node in graph.nodes:
            assert set(node.outputs) <= read


@MANY
@given(adapted_graphs(), OPTIMIZERS)
def test_all_graphs_of_a_job_share_residents_and_forward_tensors(adapted: Adapted, optimizer: Sgd) -> None:
    direct, accumulating, evaluate = training_graphs(adapted, optimizer)
    assert direct.resident() == accumulating.resident() == evaluate.resident()
    forward = {tensor.name: tensor for tensor in evaluate.tensors}
    for graph in (direct, accumulating):
        assert forward.items() <= graph.by_name().items()
