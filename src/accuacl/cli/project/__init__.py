"""`accuacl project`: people label, a model learns. One file a command."""

from __future__ import annotations

from accuacl.cli.lazy import lazy_group

COMMANDS = {
    "new": "Start a project with the pool of its first task.",
    "add": "Add the next task's pool; at any time, also while people label.",
    "serve": "Serve the page on which people label, and train whenever a round is complete.",
    "person": "Let someone label, or end their access.",
    "gold": "Name items whose answers are known, to see how often people are right.",
    "status": "Show what the project is waiting for, what people have done, and how good the model is.",
    "train": "Do what can be done now: close a complete round, train, choose the next batch.",
    "label": "Take labels that you have already from a file; those of items that nobody was asked for cost nothing.",
    "forget": "Remove items, their labels and what was learned from them.",
    "relocate": "Say where data lie that were moved: a folder of images, or one that has those of several tasks.",
    "export": "Write the labels (CSV, Parquet), the model (safetensors, a loader), and predictions for new data.",
    "push": "Let people label the open round in Label Studio.",
    "pull": "Take what people have answered in Label Studio: labels, corrections, and skips, which cost nothing.",
}

project = lazy_group(__name__, COMMANDS, "Let people label while a model learns: labelling projects.")
