"""What a stream has taught, on disk: written while it is learnt, and found again by the same command."""

from collections.abc import Callable
from pathlib import Path

from hedgerow_agent.checkpoints import CheckpointFolder, ResumeHeader, StreamMark, checkpoint_id
from hedgerow_agent.core.data.streams import Place
from hedgerow_agent.core.data.tail import Mark
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.local.problems import Problem
from hedgerow_agent.trainer.keeping import Keeping
from hedgerow_agent.trainer.protocol import Start
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.protocol.messages import CheckpointReport


class Keeper:
    """The checkpoints of one stream; a disk that takes none is told about once and tried again at the next."""

    def __init__(self, start: Start, keep: int, say: Callable[[str], None]) -> None:
        self._keeping, self._keep, self._say = Keeping(start), keep, say
        self._folder = CheckpointFolder(Path(start.folder))
        self._kept_step = 0
        self.problem = ""  # why the last checkpoint is not there

    def restore(self, executor: Executor) -> ResumeHeader | None:
        """Bring the model to where this very run stands; return what else it goes on from."""
        resume = self._keeping.find_resume(executor.program.resident_bytes)
        if resume is None:
            return None
        executor.load_resident_state(resume.residents)
        return resume.header

    def begin(self, step: int) -> None:
        """Have nothing in the folder that comes after the step this run begins with."""
        good = self._folder.good()
        if good and not step:
            raise Problem(
                f"{self._folder.path} holds {good[-1].id} and nothing that this stream goes on from; name another "
                "folder with --out, or begin anew with --fresh."
            )
        try:
            self._folder.drop_after(step)
        except OSError as error:
            raise Problem(f"{self._folder.path} cannot be written to: {error.strerror}. Name another --out.") from None
        whole = isinstance(self._folder.find(checkpoint_id(step)), CheckpointReport)
        self._kept_step = step if whole or not step else -1

    def keep(self, executor: Executor, tally: Tally, mark: Mark | None) -> None:
        """Write where training stands, and the delta, unless that was done."""
        step = tally.step
        if step == self._kept_step:
            return
        content = self._keeping.encode(executor, step, tally.accuracy_now)
        try:
            # The resume file first: what a stream has taught cannot be learnt again from an older one.
            self._keeping.write_resume(executor, step, tally, _noted(mark))
            self._folder.add(checkpoint_id(step), step, content, tally.accuracy_now)
            self._folder.drop_old(self._keep)
        except OSError as error:
            self._fail(step, error)
            return
        self._kept_step, self.problem = step, ""

    def words(self) -> str:
        """Return which checkpoint is there."""
        good = self._folder.good()
        return f"{good[-1].id} is kept in {self._folder.path}." if good else "The base model is unchanged."

    def _fail(self, step: int, error: OSError) -> None:
        problem = f"The checkpoint of step {step} cannot be written: {error.strerror}; free some space."
        if not self.problem:
            self._say(f"{problem} Learning goes on, and the next checkpoint is tried again.")
        self.problem = problem


def mark_in(header: ResumeHeader | None) -> Mark | None:
    """Return how far the stream was learnt from, if it can be read again from there."""
    if header is None or header.stream is None:
        return None
    noted = header.stream
    return Mark(noted.inode, Place(noted.byte, noted.line), noted.end, noted.sha256)


def _noted(mark: Mark | None) -> StreamMark | None:
    if mark is None:
        return None
    return StreamMark(inode=mark.inode, byte=mark.place.byte, line=mark.place.line, end=mark.end, sha256=mark.sha256)
