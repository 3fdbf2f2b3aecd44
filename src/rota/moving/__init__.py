"""Moving all that one store has to another: what users outgrow a file by.

Both stores are sealed while jobs are on their way, so that nothing comes in, runs or changes behind the move's back: whoever
tries is told where the jobs go. The seals are also what a move that was interrupted goes on by. The source keeps all that it
had, and its seal; the target's is lifted once both have been held against each other.
"""

from rota.moving.move import Moved, Stage, left, look, move, reopen, untold

__all__ = ["Moved", "Stage", "left", "look", "move", "reopen", "untold"]
