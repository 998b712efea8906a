"""The only door to files, commands and the environment of a machine: real, replayed from a recording, or recording.

The classes live in modules of their own; what is not used is not loaded.
"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accel_env.system.real import RealSystem
    from accel_env.system.record import RecordingSystem
    from accel_env.system.replay import ReplayedSystem
    from accel_env.system.types import Completed, Machine, System
else:
    _HOMES = {"RealSystem": "real", "RecordingSystem": "record", "ReplayedSystem": "replay", "Completed": "types",
              "Machine": "types", "System": "types"}

    def __getattr__(name):
        """Load a class when somebody asks for it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = ["Completed", "Machine", "RealSystem", "RecordingSystem", "ReplayedSystem", "System"]
