"""Cortex compiles recursive deep-learning models into fused native code for low-latency inference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.errors import CortexError, InternalError, ModelError, ScheduleError, StructureError
