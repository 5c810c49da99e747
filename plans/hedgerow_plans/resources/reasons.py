"""Condition types of a TrainingJob, its summary words, and every reason a condition can have.

Reasons are part of the API: people alert on them and scripts wait for them. None is ever renamed.
"""

from enum import StrEnum


class ConditionType(StrEnum):
    """What is observed about a TrainingJob."""

    SUCCEEDED = "Succeeded"  # the summary: Unknown while it runs, then True or False for good
    PLANNED = "Planned"  # every class among the selected devices has a program
    PROGRESSING = "Progressing"  # devices are training
    SUSPENDED = "Suspended"  # somebody asked for a pause
    ABORTED = "Aborted"  # ended before its devices did
    ROLLED_BACK = "RolledBack"  # the newest rollback request of the job, over all its devices


class JobState(StrEnum):
    """The summary word of the STATE column."""

    PENDING = "Pending"  # nothing to do yet: no device, or none approved
    PLANNING = "Planning"
    TRAINING = "Training"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ROLLED_BACK = "RolledBack"
    INVALID = "Invalid"  # needs an edit before anything can happen


class SucceededReason(StrEnum):
    """Reasons of `Succeeded`."""

    THRESHOLD_REACHED = "ThresholdReached"  # True: enough devices have completed
    DEVICES_TRAINING = "DevicesTraining"  # Unknown: not enough yet
    WAITING_FOR_DEVICES = "WaitingForDevices"  # Unknown: no approved device is there
    WAITING_FOR_PLANS = "WaitingForPlans"  # Unknown
    JOB_SUSPENDED = "JobSuspended"  # Unknown
    ALL_DEVICES_HELD = "AllDevicesHeld"  # Unknown: everything was rolled back; nothing is left to judge
    THRESHOLD_UNREACHABLE = "ThresholdUnreachable"  # False: too many failed or refused
    DEADLINE_EXCEEDED = "DeadlineExceeded"  # False
    NOTHING_CAN_RUN = "NothingCanRun"  # Unknown: see Planned; an edit can still save it
    INVALID_SPEC = "InvalidSpec"  # False: the object does not parse


class PlannedReason(StrEnum):
    """Reasons of `Planned`."""

    PROGRAMS_READY = "ProgramsReady"  # True
    PLANNING_PROGRAMS = "PlanningPrograms"  # Unknown: being computed
    NO_DEVICE_MATCHES = "NoDeviceMatches"  # Unknown: the selector finds nothing, so there is no class to plan for
    NO_DEVICE_APPROVED = "NoDeviceApproved"  # Unknown: devices match, none is approved
    BUDGET_TOO_SMALL = "BudgetTooSmall"  # False: no plan fits; the message has the bytes needed and available
    UNKNOWN_MODEL = "UnknownModel"  # False: the zoo has no such model; the message lists what it has
    UNKNOWN_DEVICE_CLASS = "UnknownDeviceClass"  # False: devices name a class that does not exist
    UNSUPPORTED_METHOD = "UnsupportedMethod"  # False: the method does not apply to the model
    UNSUPPORTED_AGENT = "UnsupportedAgent"  # False: agents speak another program schema or kernel table
    PLANNING_FAILED = "PlanningFailed"  # False: an error of ours; tried again
    INVALID_SPEC = "InvalidSpec"  # False: the object does not parse


class ProgressingReason(StrEnum):
    """Reasons of `Progressing`."""

    DEVICES_TRAINING = "DevicesTraining"  # True
    DEVICES_PREPARING = "DevicesPreparing"  # True: assigned, fetching and checking
    DEVICES_OFFLINE = "DevicesOffline"  # False: what is left to do is on devices that are not there
    DEVICES_BUSY = "DevicesBusy"  # False: the devices run another job; this one waits
    DEVICES_PAUSED = "DevicesPaused"  # False: nothing fits the memory that is allowed right now
    NOTHING_ASSIGNED = "NothingAssigned"  # False: no plans or no devices yet
    JOB_SUSPENDED = "JobSuspended"  # False
    JOB_FINISHED = "JobFinished"  # False


class SuspendedReason(StrEnum):
    """Reasons of `Suspended`."""

    SUSPEND_REQUESTED = "SuspendRequested"  # True: spec.suspend
    NOT_REQUESTED = "NotRequested"  # False


class AbortedReason(StrEnum):
    """Reasons of `Aborted`."""

    DEADLINE_EXCEEDED = "DeadlineExceeded"  # True
    THRESHOLD_UNREACHABLE = "ThresholdUnreachable"  # True: so many failed that success is out of reach
    NOT_ABORTED = "NotAborted"  # False


class RolledBackReason(StrEnum):
    """Reasons of `RolledBack`."""

    COMPLETE = "Complete"  # True: every device runs what was asked for
    PENDING = "Pending"  # Unknown: devices have not answered, or are offline
    UNABLE = "Unable"  # False: at least one device could not; the message says which
    NOT_REQUESTED = "NotRequested"  # False


class EventReason(StrEnum):
    """Reasons of Events: what a person would want to be told."""

    DEVICE_REGISTERED = "DeviceRegistered"
    PROGRAM_PLANNED = "ProgramPlanned"
    PROGRAM_INFEASIBLE = "ProgramInfeasible"
    JOB_DISPATCHED = "JobDispatched"
    JOB_SUCCEEDED = "JobSucceeded"
    JOB_FAILED = "JobFailed"
    DEVICE_FAILED = "DeviceFailed"
    DEVICE_REJECTED = "DeviceRejected"
    ROLLBACK_REQUESTED = "RollbackRequested"
    ROLLBACK_FINISHED = "RollbackFinished"
    DOCUMENT_REFUSED = "DocumentRefused"  # a device did not obey a message
    INVALID_SPEC = "InvalidSpec"
