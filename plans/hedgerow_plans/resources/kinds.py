"""The four kinds as Kubernetes sees them: names, scope, and the columns of `kubectl get`."""

from dataclasses import dataclass

from hedgerow_plans.resources.common import Resource
from hedgerow_plans.resources.device import Device
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.execution_plan import ExecutionPlan
from hedgerow_plans.resources.training_job import TrainingJob


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a wide one is shown with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource."""

    model: type[Resource]
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()  # for `kubectl get --field-selector`
    namespaced: bool = True

    @property
    def name(self) -> str:
        """Its name in manifests."""
        return self.model.__name__


AGE = Column("Age", ".metadata.creationTimestamp", "date")

TRAINING_JOB = Kind(
    TrainingJob,
    "trainingjobs",
    ("tj",),
    (
        Column("State", ".status.state"),
        Column("Devices", ".status.devices.matched", "integer"),
        Column("Done", ".status.devices.completed", "integer"),
        Column("Failed", ".status.devices.failed", "integer"),
        Column("Progress", ".status.columns.progress"),
        Column("Accuracy", ".status.columns.accuracy", description="Mean before and now."),
        AGE,
        Column("Model", ".spec.model.zoo", wide=True),
        Column("Dataset", ".spec.dataset", wide=True),
        Column("Offline", ".status.devices.offline", "integer", wide=True),
        Column("Held", ".status.devices.heldOrRolledBack", "integer", wide=True),
        Column("Message", ".status.conditions[?(@.type=='Succeeded')].message", wide=True),
    ),
    (".status.state", ".spec.dataset"),
)

DEVICE_CLASS = Kind(
    DeviceClass,
    "deviceclasses",
    ("dcl",),
    (
        Column("Budget", ".spec.memory.budget"),
        Column("Allowance", ".spec.memory.allowance"),
        Column("Flops", ".spec.compute.flopsPerSecond", "integer"),
        AGE,
        Column("Floor", ".spec.memory.floor", wide=True),
        Column("Frozen", ".spec.memory.frozenWeights", wide=True),
        Column("Description", ".spec.description", wide=True),
    ),
    namespaced=False,
)

DEVICE = Kind(
    Device,
    "devices",
    ("dev",),
    (
        Column("Class", ".spec.class"),
        Column("State", ".status.state"),
        Column("Job", ".status.job"),
        Column("Rung", ".status.columns.rung", description="Plan in use, of how many; 1 has the most memory."),
        Column("Memory", ".status.columns.memory", description="Peak of the arena, and what is allowed."),
        Column("Checkpoint", ".status.checkpoint"),
        AGE,
        Column("Approved", ".spec.approved", "boolean", wide=True),
        Column("Running", ".status.running", wide=True, description="The checkpoint that is used, or base."),
        Column("Accuracy", ".status.columns.accuracy", wide=True),
        Column("Energy", ".status.columns.energy", wide=True),
        Column("Rollback", ".status.columns.rollback", wide=True),
        Column("Refused", ".status.columns.refused", wide=True, description="The last message it did not obey."),
    ),
    (".spec.class", ".status.state", ".status.job"),
)

EXECUTION_PLAN = Kind(
    ExecutionPlan,
    "executionplans",
    ("xp",),
    (
        Column("Model", ".spec.model"),
        Column("Method", ".spec.method"),
        Column("Class", ".spec.class"),
        Column("Rungs", ".spec.columns.rungs"),
        Column("Floor", ".spec.columns.floor"),
        Column("Peak", ".spec.columns.peak"),
        Column("Gap", ".spec.columns.gap", description="How far its energy may be from the proven least."),
        AGE,
        Column("Batch", ".spec.batchSize", "integer", wide=True),
        Column("Digest", ".spec.digest", wide=True),
    ),
    (".spec.class", ".spec.model", ".spec.digest"),
)

KINDS = (TRAINING_JOB, DEVICE_CLASS, DEVICE, EXECUTION_PLAN)
