"""Experiments: Algorithm 1 over a stream of tasks, resumable to the bit.

from accuacl.experiment import make, run
result = run(make({"benchmark": "split-digits", "strategy": "accuacl"}), Path("runs/a"))
"""

from accuacl.experiment import metrics
from accuacl.experiment.config import (
    DEFAULTS,
    DEVICE,
    OWN,
    Config,
    Scale,
    canonical,
    decided_by_scale,
    make,
    read_yaml,
    to_yaml,
)
from accuacl.experiment.configfile import read_config, settings_before
from accuacl.experiment.journal import Journal
from accuacl.experiment.loop import all_tasks, run
from accuacl.experiment.oracle import LabelsPending, Oracle, Simulated
from accuacl.experiment.plugins import load_plugins
from accuacl.experiment.reader import Step, read_steps
from accuacl.experiment.record import METRICS, Row, data_note, run_row
from accuacl.experiment.setting import device_of, environment, open_stream, training_of, transform_of
from accuacl.experiment.steps import Handle, Ids, Steps
from accuacl.experiment.table import add_to_csv, read_csv, row_settings, settings_key, write_csv
from accuacl.experiment.tensors import load_arrays, load_tensors, save_arrays, save_tensors

__all__ = [
    "DEFAULTS",
    "DEVICE",
    "METRICS",
    "OWN",
    "Config",
    "Handle",
    "Ids",
    "Journal",
    "LabelsPending",
    "Oracle",
    "Row",
    "Scale",
    "Simulated",
    "Step",
    "Steps",
    "add_to_csv",
    "all_tasks",
    "canonical",
    "data_note",
    "decided_by_scale",
    "device_of",
    "environment",
    "load_arrays",
    "load_plugins",
    "load_tensors",
    "make",
    "metrics",
    "open_stream",
    "read_config",
    "read_csv",
    "read_steps",
    "read_yaml",
    "row_settings",
    "run",
    "run_row",
    "save_arrays",
    "save_tensors",
    "settings_before",
    "settings_key",
    "to_yaml",
    "training_of",
    "transform_of",
    "write_csv",
]
