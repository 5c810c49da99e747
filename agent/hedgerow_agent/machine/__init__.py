"""The device's decisions, pure: `handle(state, event)` returns the next state and what is to be done about it.

No clock, no files, no network, no processes: whoever carries out an instruction sends what became of it back as an
event. The state can be written to disk after every event and read back after a power cut.
"""

from hedgerow_agent.machine.handle import handle
from hedgerow_agent.machine.state import MachineState

__all__ = ["MachineState", "handle"]
