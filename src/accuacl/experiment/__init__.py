"""Experiments: Algorithm 1 over a stream of tasks, resumable to the bit.

from accuacl.experiment import make, run
result = run(make({"benchmark": "split-digits", "strategy": "accuacl"}), Path("runs/a"))
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.experiment import metrics
    from accuacl.experiment.advising import advice
    from accuacl.experiment.checkpoints import Learning, load_memory, memory_result, train_round, update_memory
    from accuacl.experiment.choosing import choose, choose_uniformly
    from accuacl.experiment.config import BUILT_IN, DEVICE, Config, Scale
    from accuacl.experiment.configfile import read_config, settings_before
    from accuacl.experiment.defaults import DEFAULTS, OWN
    from accuacl.experiment.journal import Journal
    from accuacl.experiment.known import Handle, Ids, Known, carried_over, round_progress
    from accuacl.experiment.limits import Settings
    from accuacl.experiment.loop import Steps, all_tasks
    from accuacl.experiment.making import decided_by_scale, make
    from accuacl.experiment.oracle import LabelsPending, Oracle, Simulated
    from accuacl.experiment.own_network import own_model
    from accuacl.experiment.reader import Step, read_steps
    from accuacl.experiment.record import CLASS_METRICS, METRICS, Row, data_note, run_row
    from accuacl.experiment.relevant import canonical
    from accuacl.experiment.resultfile import read_result
    from accuacl.experiment.runner import run
    from accuacl.experiment.setting import device_of, difference, environment, open_stream, training_of, transform_of
    from accuacl.experiment.settings_yaml import ALIASES, read_yaml, renamed, to_yaml
    from accuacl.experiment.stream_settings import is_tidy, stream_words
    from accuacl.experiment.table import add_to_csv, read_csv, row_settings, settings_key, write_csv
    from accuacl.experiment.tensors import load_arrays, load_tensors, save_arrays, save_tensors

__all__ = [
    "ALIASES",
    "BUILT_IN",
    "CLASS_METRICS",
    "DEFAULTS",
    "DEVICE",
    "METRICS",
    "OWN",
    "Config",
    "Handle",
    "Ids",
    "Journal",
    "Known",
    "LabelsPending",
    "Learning",
    "Oracle",
    "Row",
    "Scale",
    "Settings",
    "Simulated",
    "Step",
    "Steps",
    "add_to_csv",
    "advice",
    "all_tasks",
    "canonical",
    "carried_over",
    "choose",
    "choose_uniformly",
    "data_note",
    "decided_by_scale",
    "device_of",
    "difference",
    "environment",
    "is_tidy",
    "load_arrays",
    "load_memory",
    "load_tensors",
    "make",
    "memory_result",
    "metrics",
    "open_stream",
    "own_model",
    "read_config",
    "read_csv",
    "read_result",
    "read_steps",
    "read_yaml",
    "renamed",
    "round_progress",
    "row_settings",
    "run",
    "run_row",
    "save_arrays",
    "save_tensors",
    "settings_before",
    "settings_key",
    "stream_words",
    "to_yaml",
    "train_round",
    "training_of",
    "transform_of",
    "update_memory",
    "write_csv",
]

__getattr__ = front_door(__name__)
