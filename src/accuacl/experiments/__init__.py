"""Experiments: Algorithm 1 over a stream of tasks, resumable bit for bit.

    from accuacl.experiments import make, run
    result = run(make({"benchmark": "split-digits", "strategy": "accuacl"}), Path("runs/a"))

The loop does not know who labels. `accuacl.labeling` runs it with people as the oracle, and for that imports only the
journalled loop and its settings from this module:

- `all_tasks(steps, journal)` is the loop, and `Steps` says what a class with its steps must have;
- `LoopState` is what a step gets: an immutable value, to which a subclass may add fields;
- `Journal` records each `Step` once, with the `Settings` that it began with; `read_steps` reads what is recorded;
- `choose` asks a strategy, `Learning` trains a round and updates the memory, `checkpoints` saves and loads weights;
  a `Handle` names weights that are loaded when they are needed, and `Ids` are examples, by their rows;
- `Config` has the settings of a run, which those of a project become; `read_config` reads those that a file has, and
  `with_typed_options` checks the options of a strategy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments import checkpoints as checkpoints, heads as heads, metrics as metrics
    from accuacl.experiments.checkpoints import *
    from accuacl.experiments.config import *
    from accuacl.experiments.defaults import *
    from accuacl.experiments.journal import *
    from accuacl.experiments.loop import *
    from accuacl.experiments.notes import *
    from accuacl.experiments.results import *
    from accuacl.experiments.runner import *
    from accuacl.experiments.strategy_options import *
    from accuacl.experiments.stream_settings import *
    from accuacl.experiments.yaml_files import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    modules="checkpoints heads metrics",
    checkpoints="Learning",
    config="BUILT_IN Config Scale Settings looks_at_sample own_model read_config",
    defaults="BY_SCALE DEFAULTS OWN canonical decided_by_scale make usual_sample_of",
    journal="Journal Step read_steps",
    loop="Handle Ids LoopState Steps all_tasks choose",
    notes="advice",
    results=(
        "CLASS_METRICS Row add_to_csv data_note read_csv read_result row_settings run_row "
        "settings_key shown_settings write_csv"
    ),
    runner="run",
    strategy_options="OPTIONS OPTION_SETTINGS overridden with_typed_options without_foreign_options",
    stream_settings="describe_stream is_class_incremental open_stream",
    yaml_files="ALIASES read_yaml renamed to_yaml",
)
