"""Baselines of a report: what `--baseline` may name, and what groups of runs are called in its settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accuacl.base.errors import InputError, near
from accuacl.experiments import ALIASES, Config, learners
from accuacl.experiments.report.groups import (
    LEARNER_OPTIONS,
    LEARNER_SETTINGS,
    SOURCE,
    STRATEGY_SETTINGS,
    Group,
    show,
)

BY_NAME = ("strategy", "learner", "memory_policy", SOURCE)  # settings whose values `--baseline` may name alone
Labels = tuple[str, ...]  # what runs are called in the settings of a baseline


@dataclass(frozen=True)
class Baseline:
    """The runs that all others are compared with: those that have these labels in these settings."""

    settings: tuple[str, ...]
    labels: Labels

    def of(self, group: Group) -> Labels:
        """What the group is called in these settings."""
        return labels_of(group, self.settings)

    def ignored(self, group: Group) -> set[str]:
        """The settings in which the group and its baseline may differ."""
        ignored = set(self.settings)
        if "strategy" in self.settings:
            ignored |= {name for name in STRATEGY_SETTINGS if name != SOURCE}
        if "learner" in self.settings:
            entry = learners.REGISTRY.get(group["learner"])
            ignored |= {*LEARNER_OPTIONS, *(entry.fixed if entry else ())}
        return ignored | ({"lam_from"} if "lam" in self.settings else set())

    def cell(self, group: Group) -> str:
        """What the group has in common with its baseline, as a phrase."""
        ignored = self.ignored(group)
        words = [group.title_without(ignored)]
        for name, options in (("learner", LEARNER_SETTINGS), ("strategy", STRATEGY_SETTINGS)):
            words += [str(group[name])] if name not in ignored else []
            words += group.changed(option for option in options if option not in ignored)
        return ", ".join(words)

    def row(self, labels: Labels) -> str:
        """Labels as tables have them: memory policies are called so, because strategies have the same names.

        >>> Baseline(("strategy", "memory_policy"), ("coverage", "paper")).row(("uniform", "coverage"))
        'uniform / memory policy coverage'
        """
        kinds = ("memory policy " if setting == "memory_policy" else "" for setting in self.settings)
        return " / ".join(f"{kind}{label}" for kind, label in zip(kinds, labels, strict=True))

    def __str__(self) -> str:
        if set(self.settings) <= set(BY_NAME):
            return self.row(self.labels)
        pairs = zip(self.settings, self.labels, strict=True)
        return ", ".join(f"{setting.replace('_', ' ')} {label}" for setting, label in pairs)

    def with_options(self, groups: Sequence[Group]) -> Baseline:
        """The baseline with the options that all runs of its strategy or learner have.

        `coverage` is `coverage, sample 5000` if no run has another label that begins so.
        """
        labels = []
        for i, label in enumerate(self.labels):
            known = {self.of(group)[i] for group in groups}
            longer = [each for each in known if each.startswith(f"{label}, ")]
            labels.append(longer[0] if label not in known and len(longer) == 1 else label)
        return Baseline(self.settings, tuple(labels))


def labels_of(group: Group, settings: Sequence[str]) -> Labels:
    """The group's values of these settings; strategies and learners have their further options in their labels."""
    apart = {SOURCE, "memory_policy", "sampling", *settings}
    return tuple(
        group.name_of(setting, apart) if setting in ("strategy", "learner") else show(group[setting])
        for setting in settings
    )


def known_labels(settings: Sequence[str], groups: Sequence[Group]) -> list[Labels]:
    """What the groups are called in these settings, each once."""
    return list(dict.fromkeys(labels_of(group, settings) for group in groups))


def named_baseline(given: str | Baseline, groups: Sequence[Group]) -> Baseline:
    """The baseline that was given, or the one of a name, of setting=value, or of several of these with commas."""
    candidates = [given] if isinstance(given, Baseline) else _meant(given.strip().rstrip(", "))
    known = {baseline.settings: known_labels(baseline.settings, groups) for baseline in candidates}
    candidates = [baseline.with_options(groups) for baseline in candidates]
    found = [
        baseline for baseline in candidates if any(baseline.labels) and baseline.labels in known[baseline.settings]
    ]
    compared = [baseline for baseline in found if len(known[baseline.settings]) > 1]
    if len(compared) > 1:
        kinds = " and ".join(f"a {baseline.settings[0].replace('_', ' ')}" for baseline in compared)
        spellings = " or ".join(f"{baseline.settings[0]}={baseline.labels[0]}" for baseline in compared)
        raise InputError(f"the baseline {str(given)!r} is {kinds} of these runs; give {spellings}.")
    if found:
        return (compared or found)[0]
    texts = [
        f"{' / '.join(settings).replace('_', ' ')} {', '.join(' / '.join(each) for each in labels)}"
        for settings, labels in known.items()
        if any(map(any, labels))
    ]
    raise InputError(f"no run has the baseline {str(given)!r}; the runs have {'; '.join(texts)}.")


def _meant(given: str) -> list[Baseline]:
    """What a name, or settings with their values, may mean."""
    if "=" not in given:
        return [Baseline((setting,), (given,)) for setting in BY_NAME]
    settings, labels = [], []
    for part in re.split(r",\s*(?=[\w -]*=)", given):  # options behind commas belong to a label
        setting, _, label = part.partition("=")
        settings.append(_setting(setting, given))
        labels.append(label.strip())
    return [Baseline(tuple(settings), tuple(labels))]


def _setting(name: str, given: str) -> str:
    name = name.strip().replace("-", "_")
    if not name:
        raise InputError(f"{given!r} names no setting; give its name before the sign, as in labels=100.")
    name = ALIASES.get(name, name)
    if name not in (*Config.model_fields, SOURCE):
        meant = near(name, Config.model_fields)
        raise InputError(f"there is no setting {name!r}; {f'did you mean {meant}?' if meant else 'give another.'}")
    return name
