"""Experiments: Algorithm 1 over a stream of tasks, resumable to the bit.

from accuacl.experiments import make, run
result = run(make({"benchmark": "split-digits", "strategy": "accuacl"}), Path("runs/a"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments import metrics as metrics
    from accuacl.experiments.checkpoints import (
        Learning as Learning,
        load_arrays as load_arrays,
        load_memory as load_memory,
        load_tensors as load_tensors,
        memory_result as memory_result,
        save_arrays as save_arrays,
        save_tensors as save_tensors,
        train_round as train_round,
        update_memory as update_memory,
    )
    from accuacl.experiments.config import (
        BUILT_IN as BUILT_IN,
        DEVICE as DEVICE,
        Config as Config,
        Scale as Scale,
        Settings as Settings,
        canonical as canonical,
        decided_by_scale as decided_by_scale,
        make as make,
        own_model as own_model,
    )
    from accuacl.experiments.config_files import (
        ALIASES as ALIASES,
        read_config as read_config,
        read_yaml as read_yaml,
        renamed as renamed,
        settings_before as settings_before,
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
        write_csv as write_csv,
    )
    from accuacl.experiments.runner import run as run
    from accuacl.experiments.setting import (
        device_of as device_of,
        difference as difference,
        environment as environment,
        open_stream as open_stream,
        training_of as training_of,
        transform_of as transform_of,
    )
    from accuacl.experiments.state import (
        Handle as Handle,
        Ids as Ids,
        LoopState as LoopState,
        carried_over as carried_over,
        round_progress as round_progress,
    )
    from accuacl.experiments.steps import (
        Oracle as Oracle,
        Simulated as Simulated,
        choose as choose,
        choose_uniformly as choose_uniformly,
    )
    from accuacl.experiments.stream_settings import (
        DEFAULTS as DEFAULTS,
        OWN as OWN,
        is_tidy as is_tidy,
        stream_words as stream_words,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "": ("metrics",),
        "checkpoints": (
            "Learning",
            "load_arrays",
            "load_memory",
            "load_tensors",
            "memory_result",
            "save_arrays",
            "save_tensors",
            "train_round",
            "update_memory",
        ),
        "config": (
            "BUILT_IN",
            "DEVICE",
            "canonical",
            "Config",
            "decided_by_scale",
            "make",
            "own_model",
            "Scale",
            "Settings",
        ),
        "config_files": ("ALIASES", "read_config", "read_yaml", "renamed", "settings_before", "to_yaml"),
        "journal": ("Journal", "read_steps", "Step"),
        "loop": ("all_tasks", "Steps"),
        "notes": ("advice",),
        "results": (
            "CLASS_METRICS",
            "METRICS",
            "add_to_csv",
            "data_note",
            "read_csv",
            "read_result",
            "Row",
            "row_settings",
            "run_row",
            "settings_key",
            "write_csv",
        ),
        "runner": ("run",),
        "setting": ("device_of", "difference", "environment", "open_stream", "training_of", "transform_of"),
        "state": ("carried_over", "Handle", "Ids", "LoopState", "round_progress"),
        "steps": ("choose", "choose_uniformly", "Oracle", "Simulated"),
        "stream_settings": ("DEFAULTS", "OWN", "is_tidy", "stream_words"),
    },
)
