"""What is known about settings that work together badly, said before a run begins; nothing is refused."""

from __future__ import annotations

from accuacl.data import BENCHMARKS
from accuacl.experiment.config import Config
from accuacl.experiment.relevant import options_for
from accuacl.strategies import WITHOUT_MEMORY

BEHIND_UNIFORM = {  # by how many points on CIFAR-10 and CIFAR-100: docs/results/cpu.csv, three seeds
    "entropy": "9.8 and 4.6", "least-confidence": "7.3 and 4.8", "bait": "6.7", "badge": "3.6 and 2.5",
    "kcenter": "3.5 and 3.7",
}  # fmt: skip
BETTER_THAN_ACCUACL = {  # coverage with its memory policy, by learner: docs/results/study, ten seeds and p < 0.01
    "der++": "6.3 and 3.1 points more accurate on CIFAR-10 and CIFAR-100, though accuacl forgot less there",
    "er-ace": "8.1 points more accurate on CIFAR-10 (five seeds)",
    "er": "9.8 points more accurate on the digits",
}
FEW_LABELS = 1000  # of a task, with which these were measured


def advice(config: Config) -> list[str]:
    """Sentences about the settings of a run.

    >>> from accuacl.experiment import make
    >>> advice(make({"strategy": "badge+memory", "memory": 0}))
    ['badge+memory keeps away from the replay memory, and --memory is 0: it picks as badge does.']
    """
    sentences = []
    strategy, memory = config.strategy, config.memory
    if strategy in WITHOUT_MEMORY and not memory:
        sentences.append(
            f"{strategy} keeps away from the replay memory, and --memory is 0: it picks as "
            f"{WITHOUT_MEMORY[strategy]} does."
        )
    if "lam" in options_for(strategy) and strategy != "accuacl-full" and not memory:  # which sees all of the past
        sentences.append(f"{strategy} weighs the past by the replay memory, and --memory is 0: it sees no past.")
    if config.learner == "der++" and strategy in BEHIND_UNIFORM and config.labels <= FEW_LABELS:
        where = "CIFAR-10" if strategy == "bait" else "CIFAR-10 and CIFAR-100"
        sentences.append(
            f"with der++ and up to {FEW_LABELS} labels a task {strategy} was {BEHIND_UNIFORM[strategy]} points less "
            f"accurate than uniform on {where}; try --strategy coverage with --memory-policy coverage beside it."
        )
    better = BETTER_THAN_ACCUACL.get(config.learner, "") if strategy == "accuacl" else ""
    like_those = config.labels <= FEW_LABELS and (config.learner != "er" or config.benchmark == "split-digits")
    if better and like_those and memory and config.memory_policy == "paper":
        sentences.append(
            f"accuacl is the paper's strategy; with {config.learner}, --strategy coverage --memory-policy coverage was "
            f"{better}."
        )
    tasks = config.tasks  # of a whole stream `stream_notes` says it, which has counted its tasks
    if strategy != "full" and tasks > 1 and memory >= config.labels * tasks:
        sentences.append(
            f"a memory of {memory} keeps all labels of {tasks} tasks of {config.labels}, so that little can be "
            "forgotten; a smaller --memory makes strategies differ more."
        )
    if config.scale == "smoke" and config.benchmark not in BENCHMARKS:
        sentences.append("--scale smoke only tries whether everything works; --scale cpu trains long enough to learn.")
    return sentences
