"""Why an example was chosen: what the scores that a strategy gives its picks mean, in words for people who label."""

from __future__ import annotations

MEANINGS = {
    "distribution": "how far this example is from what the old and new tasks need together; smaller is better",
    "magnitude": "how much the model can learn from this example; larger is better",
    "entropy": "how undecided the model is between all classes (nats); larger is chosen first",
    "confidence": "the probability that the model gives its guess; smaller is chosen first",
    "margin": "how much more probable the model's first guess is than its second; smaller is chosen first",
    "gain": "how much this example adds to the information of those labelled or chosen before it; larger is better",
    "draw": "drawn at random from the task's examples",
    "accuacl": "1 if AccuACL has chosen this example, 0 if the other half of the strategy has",
}
DISTANCES = {  # what `distance` is measured from depends on the strategy
    "kcenter": "how far this example is, in the model's embedding, from the nearest one labelled in this task or "
    "chosen before it; the farthest is chosen first",
    "kcenter+memory": "how far this example is, in the model's embedding, from the nearest one labelled in this task, "
    "kept in the replay memory or chosen before it; the farthest is chosen first",
    "badge": "how much the training step that this example would cause differs from the most similar one among those "
    "chosen before it in this round (for the first: how large the step is); larger distances are drawn more often",
    "badge+memory": "how much the training step that this example would cause differs from the most similar one among "
    "those in the replay memory or chosen before it in this round (for the first, without a memory: how large the step "
    "is); larger distances are drawn more often",
    "typiclust": "how far this example is, on average, from its 20 nearest in its cluster; the smallest is chosen "
    "first",
}
COVERS = "how many of the task's examples this one newly stands for; larger is better"
GAINS = {  # and so does what is gained
    "coverage": COVERS,
    "coverage+memory": "how many of the task's examples this one newly stands for, not counting those that the "
    "replay memory stands for; larger is better",
    "accuacl+coverage": COVERS,
    "uncertain-coverage": "how many of the task's examples this one newly stands for, each counted by how undecided "
    "the model is about it; larger is better",
    "fisher-ratio": "how much this example lowers the uncertainty about old and new tasks together; larger is better",
}
UNKNOWN = "a score of the strategy"  # a plugin's


def meaning(strategy: str, score: str) -> str:
    """What a score of a pick means.

    >>> meaning("entropy", "entropy")
    'how undecided the model is between all classes (nats); larger is chosen first'
    """
    if score == "distance":
        return DISTANCES.get(strategy, UNKNOWN)
    if score == "gain" and strategy in GAINS:
        return GAINS[strategy]
    return MEANINGS.get(score, UNKNOWN)
