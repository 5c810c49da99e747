"""From a decided job status to the one of the resource, columns included."""

from hedgerow_operator.actions import SetJobStatus
from hedgerow_plans.resources.columns import job_columns
from hedgerow_plans.resources.training_job import DeviceCounts, JobAccuracy, JobPlan, TrainingJobStatus


def job_status(action: SetJobStatus) -> TrainingJobStatus:
    """Return the status as it stands in the resource."""
    counts = action.counts
    status = TrainingJobStatus(
        observed_generation=action.observed_generation,
        training_generation=action.training_generation,
        training_digest=action.training_digest,
        state=action.state,
        conditions=action.conditions,
        devices=DeviceCounts(
            matched=counts.matched,
            approved=counts.approved,
            pending=counts.pending,
            training=counts.training,
            completed=counts.completed,
            failed=counts.failed,
            rejected=counts.rejected,
            held_or_rolled_back=counts.held,
            offline=counts.offline,
        ),
        progress_percent=action.progress_percent,
        accuracy=JobAccuracy(before=action.accuracy_before, now=action.accuracy_now),
        start_time=action.start_time,
        completion_time=action.completion_time,
        plans=tuple(
            JobPlan(device_class=plan.device_class, execution_plan=plan.plan, digest=plan.digest)
            for plan in action.plans
        ),
    )
    return status.model_copy(update={"columns": job_columns(status)})
