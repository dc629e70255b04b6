"""Experiments: Algorithm 1 over a stream of tasks, resumable bit for bit.

    from accuacl.experiments import make, run
    result = run(make({"benchmark": "split-digits", "strategy": "accuacl"}), Path("runs/a"))

The loop does not know who labels. `accuacl.labeling` runs it with people as the oracle, and imports for that nothing of
this module but the journalled loop:

- `all_tasks(steps, journal)` is the loop, and `Steps` says what a class with its steps must have;
- `LoopState` is what a step is given: an immutable value, to which a subclass may add fields;
- `Journal` records each step once, with the `Settings` that it began with; `read_steps` reads what is recorded;
- `choose` asks a strategy, `Learning` trains a round and updates the memory, `checkpoints` saves and loads weights;
- `environment` and `device_of` describe the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments import checkpoints as checkpoints, heads as heads, metrics as metrics
    from accuacl.experiments.checkpoints import Learning as Learning
    from accuacl.experiments.config import (
        BUILT_IN as BUILT_IN,
        Config as Config,
        Scale as Scale,
        Settings as Settings,
        canonical as canonical,
        make as make,
        own_model as own_model,
        usual_sample_of as usual_sample_of,
    )
    from accuacl.experiments.config_files import (
        ALIASES as ALIASES,
        read_config as read_config,
        read_yaml as read_yaml,
        renamed as renamed,
        to_yaml as to_yaml,
    )
    from accuacl.experiments.journal import Journal as Journal, Step as Step, read_steps as read_steps
    from accuacl.experiments.loop import Steps as Steps, all_tasks as all_tasks
    from accuacl.experiments.notes import advice as advice
    from accuacl.experiments.results import (
        CLASS_METRICS as CLASS_METRICS,
        METRICS as METRICS,
        Row as Row,
        add_to_csv as add_to_csv,
        data_note as data_note,
        read_csv as read_csv,
        read_result as read_result,
        row_settings as row_settings,
        run_row as run_row,
        settings_key as settings_key,
        shown_settings as shown_settings,
        write_csv as write_csv,
    )
    from accuacl.experiments.runner import run as run
    from accuacl.experiments.scales import (
        BY_SCALE as BY_SCALE,
        DEFAULTS as DEFAULTS,
        OWN as OWN,
        decided_by_scale as decided_by_scale,
    )
    from accuacl.experiments.setting import (
        OPTION_SETTINGS as OPTION_SETTINGS,
        OPTIONS as OPTIONS,
        check_run_options as check_run_options,
        describe_stream as describe_stream,
        device_of as device_of,
        environment as environment,
        is_class_incremental as is_class_incremental,
        open_stream as open_stream,
        overridden as overridden,
        transform_of as transform_of,
        with_sample as with_sample,
        without_foreign_options as without_foreign_options,
    )
    from accuacl.experiments.state import Handle as Handle, Ids as Ids, LoopState as LoopState, choose as choose

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "": ("checkpoints", "heads", "metrics"),
        "checkpoints": ("Learning",),
        "config": (
            "BUILT_IN",
            "Config",
            "Scale",
            "Settings",
            "canonical",
            "make",
            "own_model",
            "usual_sample_of",
        ),
        "config_files": ("ALIASES", "read_config", "read_yaml", "renamed", "to_yaml"),
        "journal": ("Journal", "Step", "read_steps"),
        "loop": ("Steps", "all_tasks"),
        "notes": ("advice",),
        "scales": ("BY_SCALE", "DEFAULTS", "OWN", "decided_by_scale"),
        "setting": (
            "OPTIONS",
            "OPTION_SETTINGS",
            "check_run_options",
            "describe_stream",
            "device_of",
            "environment",
            "is_class_incremental",
            "open_stream",
            "overridden",
            "transform_of",
            "with_sample",
            "without_foreign_options",
        ),
        "results": (
            "CLASS_METRICS",
            "METRICS",
            "Row",
            "add_to_csv",
            "data_note",
            "read_csv",
            "read_result",
            "row_settings",
            "run_row",
            "settings_key",
            "shown_settings",
            "write_csv",
        ),
        "runner": ("run",),
        "state": ("Handle", "Ids", "LoopState", "choose"),
    },
)
