"""Tracing by kind: from a model function to RA.

The function is called with a stand-in node once per kind. `explore` finds the kinds that can be known without a
structure, by answering each yes-or-no question both ways; `see` traces the kinds of real nodes that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cortex.errors import ModelError, StructureError, excerpt
from cortex.frontend.assemble import assemble
from cortex.frontend.builder import Builder, building
from cortex.frontend.decision import DecisionTree, Traced
from cortex.frontend.explore import explore
from cortex.frontend.facts import Exploring, Facts, Oracle, Seen
from cortex.frontend.fields import Accessors, Declared
from cortex.frontend.guess_states import guess_states
from cortex.frontend.knowledge import Knowledge
from cortex.frontend.model import RecursiveModel
from cortex.frontend.signals import MissingAttribute, NeedsExample, NeedsStates, Restart
from cortex.frontend.spans import span_of_function, user_span
from cortex.frontend.standin import Place
from cortex.frontend.state import states_of
from cortex.frontend.state_form import StateForm
from cortex.frontend.weight_space import WeightSpace
from cortex.frontend.weights import Weights
from cortex.ra.ir import Model
