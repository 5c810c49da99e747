"""An operation sequence with its lifetimes, memory and cost, kept up to date edit by edit, and able to take edits back.

Recomputing lifetimes from scratch takes as long as the sequence; an edit here takes as long as the lifetimes it
changes, which is what makes thousands of trial edits a second possible.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from hedgerow_plans.planning.abstract.workload import Workload

Codes = list[int]
Span = tuple[int, int, int]
"""A tensor, its last use before a place, and its next use after it."""
Positions = npt.NDArray[np.int64]


class Timeline:
    """A sequence under construction; operations and lives (instances of tensors) have numbers that edits keep."""

    def __init__(self, work: Workload, codes: Iterable[int]) -> None:
        codes = list(codes)
        self.work = work
        self.codes: Codes = []
        self.cost = self.time = 0
        self._ids: list[int] = []  # by position: number of the operation
        self._where: Positions = np.full(16, -1, dtype=np.int64)  # by operation: position, or -1 when it is gone
        self._born: list[list[int]] = []  # by operation: lives it begins
        self._uses: list[list[int]] = []  # by operation: lives it reads
        self._again: list[bool] = []  # by operation: not the first run of its node
        self._tensor: list[int] = []  # by life
        self._reads: list[list[int]] = []  # by life: operations that read it, in order
        self._birth: Positions = np.zeros(16, dtype=np.int64)  # by life: its operation
        self._last: Positions = np.zeros(16, dtype=np.int64)  # by life: operation of its last read, or of its birth
        self._lives: list[list[int]] = [[] for _ in work.sizes]  # by tensor, in order
        self._fetched = [0] * len(work.sizes)
        self._first = [-1] * work.nodes  # by node: operation of its first run
        self._memory: Positions = np.zeros(max(16, len(codes)), dtype=np.int64)
        self._spare_operations: list[int] = []
        self._spare_lives: list[int] = []
        self._journal: list[tuple[int, int | None]] = []  # position, and the code if it was deleted
        self._unread: list[int] = []  # repeats that may have lost their last reader
        for code in codes:
            self._insert(len(self.codes), code)
        self.prune()
        self.commit()

    @property
    def memory(self) -> Positions:
        """Bytes in use, by position."""
        return self._memory[: len(self.codes)]

    @property
    def peak(self) -> int:
        """The most bytes in use at once."""
        return int(self.memory.max()) if self.codes else 0

    def mark(self) -> int:
        """Return where to come back to with `rollback`."""
        return len(self._journal)

    def commit(self) -> None:
        """Forget how to take back what was done so far."""
        self._journal.clear()

    def rollback(self, mark: int = 0) -> None:
        """Take back every edit since the mark."""
        while len(self._journal) > mark:
            position, code = self._journal.pop()
            if code is None:
                self._delete(position)
            else:
                self._insert(position, code)
        self._unread.clear()

    def insert(self, position: int, codes: Iterable[int]) -> None:
        """Put operations before a position."""
        for code in codes:
            self._insert(position, code)
            self._journal.append((position, None))
            position += 1

    def delete(self, position: int) -> None:
        """Take out a repeat; its readers read the life before it."""
        self._journal.append((position, self.codes[position]))
        self._delete(position)

    def prune(self) -> None:
        """Take out repeats that nobody reads."""
        while self._unread:
            operation = self._unread.pop()
            position = int(self._where[operation])
            if (
                position >= 0
                and self._again[operation]
                and not any(self._reads[life] for life in self._born[operation])
            ):
                self.delete(position)

    def is_repeat(self, position: int) -> bool:
        """Whether the operation is a recomputation or a page-in."""
        return self._again[self._ids[position]]

    def operation(self, position: int) -> int:
        """Return the number of the operation at a position; edits do not change it."""
        return self._ids[position]

    def position(self, operation: int) -> int:
        """Return where an operation is, or -1 if it is gone."""
        return int(self._where[operation])

    def repeats(self) -> list[int]:
        """Return the positions of all recomputations and page-ins."""
        return [position for position, operation in enumerate(self._ids) if self._again[operation]]

    def spanning(self, position: int) -> Iterator[Span]:
        """Yield (tensor, last use before, next use after) for what lives across a position without being used there."""
        count = len(self._tensor)
        births = self._where[self._birth[:count]]
        lasts = self._where[self._last[:count]]
        for life in np.nonzero((births < position) & (lasts > position))[0].tolist():
            reads = self._reads[life]
            after = self._first_read_from(reads, position)
            following = int(self._where[reads[after]])
            if following > position:
                before = int(self._where[reads[after - 1]]) if after else int(births[life])
                yield self._tensor[life], before, following

    def gap(self, position: int) -> list[tuple[int, int]]:
        """Return (tensor, end of its life before) for every life that a repeat begins."""
        operation, found = self._ids[position], []
        for life in self._born[operation]:
            lives = self._lives[self._tensor[life]]
            previous = lives[lives.index(life) - 1]
            found.append((self._tensor[life], int(self._where[self._last[previous]])))
        return found

    def leeway(self, position: int) -> tuple[int, int]:
        """Return the first and the last position at which a repeat may stand so that it reads and feeds the same."""
        operation = self._ids[position]
        first = max((int(self._where[self._birth[life]]) + 1 for life in self._uses[operation]), default=0)
        first = max(first, *(end + 1 for _, end in self.gap(position)))
        readers = [self._reads[life][0] for life in self._born[operation] if self._reads[life]]
        last = min((int(self._where[reader]) for reader in readers), default=position + 1)
        return first, position if self.work.is_fenced else last - 1  # a fence may stand in between

    def is_alive(self, tensor: int, position: int) -> bool:
        """Whether a tensor holds a value just before a position that is read there or later."""
        life = self._life_before(tensor, position)
        return life >= 0 and int(self._where[self._last[life]]) >= position

    def stored(self, tensor: int) -> bool:
        """Whether the tensor is written to storage already."""
        return self._fetched[tensor] > 0

    def step_at(self, position: int) -> int:
        """Return the node that is next to run for the first time at a position."""
        low, high = 0, self.work.nodes
        while low < high:
            middle = (low + high) // 2
            if self._where[self._first[middle]] >= position:
                high = middle
            else:
                low = middle + 1
        return low

    def _first_read_from(self, reads: list[int], position: int) -> int:
        low, high = 0, len(reads)
        while low < high:
            middle = (low + high) // 2
            if self._where[reads[middle]] >= position:
                high = middle
            else:
                low = middle + 1
        return low

    def _life_before(self, tensor: int, position: int) -> int:
        for life in reversed(self._lives[tensor]):
            if self._where[self._birth[life]] < position:
                return life
        return -1

    def _end(self, life: int) -> int:
        return int(self._where[self._last[life]])

    def _reset_last(self, life: int) -> None:
        reads = self._reads[life]
        self._last[life] = reads[-1] if reads else self._birth[life]

    def _insert(self, position: int, code: int) -> None:
        operation = self._open(position, code)
        tensors: tuple[int, ...] = self.work.reads[code] if code >= 0 else ()
        for tensor in tensors:
            self._read(operation, position, self._life_before(tensor, position))
        born = self.work.makes[code] if code >= 0 else (~code,)
        self._again[operation] = code < 0 or self._first[code] >= 0
        if not self._again[operation]:
            self._first[code] = operation
        self._charge(code, 1)
        for tensor in born:
            self._bear(operation, position, tensor)
        if self._again[operation]:
            self._unread.append(operation)

    def _open(self, position: int, code: int) -> int:
        """Make room for an operation; its memory is what lives across the place."""
        length, across = len(self.codes), self.across(position)
        if length == len(self._memory):
            self._memory = np.concatenate([self._memory, np.zeros_like(self._memory)])
        self._memory[position + 1 : length + 1] = self._memory[position:length]
        self._memory[position] = across + (self.work.scratch[code] if code >= 0 else 0)
        operation = self._new_operation()
        self._where[self._where >= position] += 1
        self._where[operation] = position
        self.codes.insert(position, code)
        self._ids.insert(position, operation)
        return operation

    def across(self, position: int) -> int:
        """Return the bytes of what lives across the place before an operation."""
        if position >= len(self.codes):
            return 0
        return int(self._memory[position]) - self._own_bytes(self.codes[position])

    def _own_bytes(self, code: int) -> int:
        """Return the bytes that begin with an operation: what it brings into memory, and its scratch."""
        if code < 0:
            return self.work.sizes[~code]
        return self.work.scratch[code] + sum(self.work.sizes[tensor] for tensor in self.work.makes[code])

    def _new_operation(self) -> int:
        if self._spare_operations:
            return self._spare_operations.pop()
        operation = len(self._born)
        if operation == len(self._where):
            self._where = np.concatenate([self._where, np.full_like(self._where, -1)])
        self._born.append([])
        self._uses.append([])
        self._again.append(False)
        return operation

    def _new_life(self, tensor: int, operation: int) -> int:
        if self._spare_lives:
            life = self._spare_lives.pop()
            self._tensor[life] = tensor
        else:
            life = len(self._tensor)
            if life == len(self._birth):
                self._birth = np.concatenate([self._birth, np.zeros_like(self._birth)])
                self._last = np.concatenate([self._last, np.zeros_like(self._last)])
            self._tensor.append(tensor)
            self._reads.append([])
        self._birth[life] = self._last[life] = operation
        return life

    def _charge(self, code: int, sign: int) -> None:
        if code >= 0:
            self.cost += sign * self.work.costs[code]
            self.time += sign * self.work.times[code]
            return
        pages = self.work.pages[~code]
        assert pages is not None, "a tensor that is never paged is paged in"  # noqa: S101 - a bug, not bad input
        self._fetched[~code] += sign
        written = self._fetched[~code] == (1 if sign > 0 else 0)
        self.cost += sign * (pages[1] + (pages[0] if written else 0))

    def _read(self, operation: int, position: int, life: int) -> None:
        reads, end = self._reads[life], self._end(life)
        reads.insert(self._first_read_from(reads, position), operation)
        self._uses[operation].append(life)
        if position > end:
            self._memory[end + 1 : position + 1] += self.work.sizes[self._tensor[life]]
            self._last[life] = operation

    def _bear(self, operation: int, position: int, tensor: int) -> None:
        size, previous = self.work.sizes[tensor], self._life_before(tensor, position)
        life = self._new_life(tensor, operation)
        self._born[operation].append(life)
        lives = self._lives[tensor]
        if previous < 0:
            lives.insert(0, life)
        else:
            lives.insert(lives.index(previous) + 1, life)
            self._hand_over(previous, life, position)
        self._memory[position : self._end(life) + 1] += size

    def _hand_over(self, previous: int, life: int, position: int) -> None:
        """Let reads after a position read the new life."""
        reads, end = self._reads[previous], self._end(previous)
        split = self._first_read_from(reads, position)
        self._reads[life] = reads[split:]
        del reads[split:]
        self._redirect(self._reads[life], previous, life)
        self._reset_last(life)
        self._reset_last(previous)
        self._memory[self._end(previous) + 1 : end + 1] -= self.work.sizes[self._tensor[previous]]
        if not reads:
            self._unread.append(int(self._birth[previous]))

    def _redirect(self, operations: list[int], old: int, new: int) -> None:
        for operation in operations:
            uses = self._uses[operation]
            uses[uses.index(old)] = new

    def _delete(self, position: int) -> None:
        operation, code = self._ids[position], self.codes[position]
        for life in self._born[operation]:
            self._end_life(life, position)
        self._born[operation].clear()
        for life in self._uses[operation]:
            self._unread_by(life, operation, position)
        self._uses[operation].clear()
        self._charge(code, -1)
        if code >= 0 and not self._again[operation]:
            self._first[code] = -1
        self._close(position, operation)

    def _end_life(self, life: int, position: int) -> None:
        """Hand the readers of a life to the one before it."""
        tensor = self._tensor[life]
        size, lives = self.work.sizes[tensor], self._lives[tensor]
        self._memory[position : self._end(life) + 1] -= size
        at = lives.index(life)
        lives.pop(at)
        reads = self._reads[life]
        if reads:
            previous = lives[at - 1]
            end = self._end(previous)
            self._redirect(reads, life, previous)
            self._reads[previous] += reads
            self._last[previous] = reads[-1]
            self._memory[end + 1 : self._end(previous) + 1] += size
        self._reads[life] = []
        self._last[life] = self._birth[life]  # spans nothing any more
        self._spare_lives.append(life)

    def _unread_by(self, life: int, operation: int, position: int) -> None:
        reads = self._reads[life]
        reads.remove(operation)
        if self._last[life] == operation:
            self._reset_last(life)
            self._memory[self._end(life) + 1 : position + 1] -= self.work.sizes[self._tensor[life]]
        if not reads:
            self._unread.append(int(self._birth[life]))

    def _close(self, position: int, operation: int) -> None:
        length = len(self.codes)
        self._memory[position : length - 1] = self._memory[position + 1 : length]
        self._where[operation] = -1
        self._where[self._where > position] -= 1
        self.codes.pop(position)
        self._ids.pop(position)
        self._spare_operations.append(operation)
