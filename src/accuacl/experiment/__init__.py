"""Experiments: Algorithm 1 over a stream of tasks, resumable to the bit.

from accuacl.experiment import make, run
result = run(make({"benchmark": "split-digits", "strategy": "accuacl"}), Path("runs/a"))
"""

from accuacl.experiment.config import Config, make
from accuacl.experiment.loop import run
from accuacl.experiment.oracle import LabelsPending, Oracle, Simulated

__all__ = ["Config", "LabelsPending", "Oracle", "Simulated", "make", "run"]
