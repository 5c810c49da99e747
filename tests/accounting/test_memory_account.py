"""Live bytes, peaks and working sets: against a simulation that knows nothing clever, and by hand on a small net."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.accounting.memory import account, lifetimes
from hedgerow_plans.graph import table
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Section
from hedgerow_plans.methods.adapted import Adapted
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.random_graphs import adapted_graphs

MANY = settings(max_examples=100, deadline=None)


def simulated_live_bytes(graph: Graph, micro_batch: int) -> list[int]:
    """Run the nodes on paper: make outputs, look at what is there, drop what no later node will read."""
    tensors, memory, profile = graph.by_name(), dict[str, int](), list[int]()
    residents = sum(tensor.bytes(1) for tensor in graph.resident())
    made_before_body: set[str] = set()
    for position, node in enumerate(graph.nodes):
        memory |= {name: tensors[name].bytes(micro_batch) for name in node.outputs}
        if node.section is Section.BEGIN:
            made_before_body |= set(node.outputs)
        profile.append(residents + sum(memory.values()) + table.scratch_bytes(node, tensors, micro_batch))
        later = graph.nodes[position + 1 :]
        read_later = {name for other in later for name in other.reads}
        in_body = any(other.section is Section.BODY for other in later)
        # the body runs again: what it shares with other rounds stays to its end, and so do the outputs
        kept = {name for name in made_before_body if _read_in_body(graph, name)} | set(graph.outputs)
        memory = {name: size for name, size in memory.items() if name in read_later or (in_body and name in kept)}
    return profile


def _read_in_body(graph: Graph, name: str) -> bool:
    return any(name in node.reads for node in graph.nodes if node.section is Section.BODY)


@MANY
@given(adapted_graphs(), st.integers(1, 5), st.sampled_from([Sgd(), Sgd(momentum=0.9)]))
def test_live_bytes_equal_a_naive_simulation(adapted: Adapted, micro_batch: int, optimizer: Sgd) -> None:
    for graph in differentiate(adapted.graph, optimizer, 8).all():
        found = account(graph, micro_batch)
        assert list(found.live_bytes) == simulated_live_bytes(graph, micro_batch)
        assert found.working_set_bytes <= found.keep_all_peak_bytes


@MANY
@given(adapted_graphs())
def test_a_tensor_lives_from_its_maker_through_its_last_reader(adapted: Adapted) -> None:
    graph = differentiate(adapted.graph, Sgd(), 4).direct
    lives = {life.tensor: life for life in lifetimes(graph, 4)}
    assert lives.keys() == {tensor.name for tensor in graph.tensors if not tensor.resident}
    for name, life in lives.items():
        readers = [at for at, node in enumerate(graph.nodes) if name in node.reads]
        end = len(graph.nodes) - 1 if name in graph.outputs else max(readers, default=life.birth)
        assert name in graph.nodes[life.birth].outputs
        assert life.last == end


def two_layers() -> Graph:
    build = Builder("net")
    hidden = build.relu("relu", build.linear("first", build.input((8,)), 16))
    return build.graph(build.linear("logits", hidden, 4))


def test_a_small_net_by_hand() -> None:
    batch, parameters = 2, 8 * 16 + 16 + 16 * 4 + 4
    found = account(differentiate(Full().apply(two_layers()).graph, Sgd(momentum=0.9), batch).direct, batch)
    assert (found.trainable_bytes, found.state_bytes, found.frozen_bytes) == (4 * parameters, 4 * parameters, 0)
    # the samples for the first weight, a bit per rectified element, its output for the second weight,
    # the labels and the probabilities for the loss
    assert found.saved_bytes == batch * (4 * 8 + 16 // 8 + 4 * 16 + 4 + 4 * 4)
    assert found.scratch_bytes == 4 * 8 * 16
    assert found.keep_all_peak_bytes > found.resident_bytes + found.saved_bytes


def test_training_the_last_layer_alone_saves_nothing_before_it() -> None:
    found = account(differentiate(Last().apply(two_layers()).graph, Sgd(), 1).direct, 1)
    assert found.saved_bytes == 4 * 16 + 4 + 4 * 4
    assert (found.trainable_bytes, found.frozen_bytes, found.state_bytes) == (4 * 68, 4 * 144, 0)


def test_a_forward_graph_saves_nothing() -> None:
    graph = differentiate(Full().apply(two_layers()).graph, Sgd(), 1).evaluate
    assert account(graph, 3).saved_bytes == 0


def test_twice_the_batch_takes_twice_the_transient_bytes_and_the_same_residents() -> None:
    graph = differentiate(Full().apply(two_layers()).graph, Sgd(), 8).evaluate
    one, two = account(graph, 1), account(graph, 2)
    assert one.resident_bytes == two.resident_bytes
    assert two.keep_all_peak_bytes - two.resident_bytes == 2 * (one.keep_all_peak_bytes - one.resident_bytes)
