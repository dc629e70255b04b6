"""Baselines of a report: what `--baseline` may name, and what groups of runs are called in its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
SLASH = " / "  # between the labels of a baseline of several settings


@dataclass(frozen=True)
class Baseline:
    """The runs that all others are compared with: those whose label in this setting, or in several, is `label`."""

    setting: str
    label: str
    also: tuple[str, ...] = ()  # further settings, whose labels stand behind a slash

    @property
    def settings(self) -> tuple[str, ...]:
        return (self.setting, *self.also)

    def of(self, group: Group) -> str:
        """What the group is called in these settings."""
        return SLASH.join(_label(group, setting, self.settings) for setting in self.settings)

    def ignored(self, group: Group) -> set[str]:
        """The settings in which the group and its baseline may differ."""
        return set().union(*(_ignored(group, setting) for setting in self.settings))

    def cell(self, group: Group) -> str:
        """What the group has in common with its baseline, as a phrase."""
        ignored = self.ignored(group)
        words = [group.title_without(tuple(ignored))]
        for name, settings in (("learner", LEARNER_SETTINGS), ("strategy", STRATEGY_SETTINGS)):
            words += [str(group[name])] if name not in ignored else []
            words += group.changed([setting for setting in settings if setting not in ignored])
        return ", ".join(words)

    def row(self, label: str) -> str:
        """A label as tables have it: memory policies are called so, because strategies have the same names.

        >>> Baseline("strategy", "coverage / paper", ("memory_policy",)).row("uniform / coverage")
        'uniform / memory policy coverage'
        """
        named = {"memory_policy": "memory policy "}
        return SLASH.join(named.get(setting, "") + each for setting, each in self._parts(label))

    def __str__(self) -> str:
        if all(setting in BY_NAME for setting in self.settings):
            return self.row(self.label)
        return ", ".join(f"{setting.replace('_', ' ')} {each}" for setting, each in self._parts(self.label))

    def _parts(self, label: str) -> list[tuple[str, str]]:
        """Each setting with its part of the label."""
        return list(zip(self.settings, label.split(SLASH) if self.also else [label], strict=True))


def _label(group: Group, setting: str, settings: Sequence[str]) -> str:
    """The group's strategy or learner with its options that are not among `settings`, or its value of another one."""
    if setting == "strategy":
        options = group.changed([name for name in STRATEGY_SETTINGS if name not in (SOURCE, *settings)])
        return ", ".join([str(group["strategy"]), *options]).replace(", lam from ", " from task ")
    if setting == "learner":
        options = group.changed([name for name in LEARNER_OPTIONS if name not in settings])
        return ", ".join([str(group["learner"]), *options])
    return show(group[setting])


def _ignored(group: Group, setting: str) -> set[str]:
    if setting == "strategy":
        return {"strategy", *STRATEGY_SETTINGS} - {SOURCE}
    if setting == "learner":
        entry = learners.REGISTRY.get(group["learner"])
        return {"learner", *LEARNER_OPTIONS, *(entry.fixed if entry else ())}
    return {setting, "lam_from"} if setting == "lam" else {setting}


def named_baseline(given: str, groups: Sequence[Group]) -> Baseline:
    """The baseline that was given, as a name or as setting=value, or as several of these with commas between them.

    The name of a strategy or learner stands for the only label that adds options to it, if none is the name alone.
    """
    places = [_with_options(place, groups) for place in baselines_called(given.strip().rstrip(", "))]
    found = [place for place in places if place.label and place.label in labels_of(place, groups)]
    compared = [place for place in found if len(labels_of(place, groups)) > 1]
    if len(compared) > 1:
        kinds = " and ".join(f"a {place.setting.replace('_', ' ')}" for place in compared)
        spellings = " or ".join(f"{place.setting}={place.label}" for place in compared)
        raise InputError(f"the baseline {given!r} is {kinds} of these runs; give {spellings}.")
    if found:
        return (compared or found)[0]
    known = {SLASH.join(place.settings): labels_of(place, groups) for place in places}
    texts = [f"{name.replace('_', ' ')} {', '.join(labels)}" for name, labels in known.items() if any(labels)]
    raise InputError(f"no run has the baseline {given!r}; the runs have {'; '.join(texts)}.")


def baselines_called(given: str) -> list[Baseline]:
    """What a name or setting=value may mean."""
    if "=" not in given:
        return [Baseline(setting, given.strip()) for setting in BY_NAME]
    parts = given.split(",")
    if not all("=" in part for part in parts):  # the label of a strategy or learner has options behind commas
        return [Baseline(*_setting_and_value(given))]
    (first, *also), values = zip(*map(_setting_and_value, parts), strict=True)
    return [Baseline(first, SLASH.join(values), tuple(also))]


def _with_options(place: Baseline, groups: Sequence[Group]) -> Baseline:
    """The baseline with the only label that adds options to its own, as `coverage, sample 5000` does to `coverage`."""
    labels = labels_of(place, groups)
    if place.label in labels:
        return place
    longer = []
    for label in labels:
        parts = zip(label.split(SLASH), place.label.split(SLASH), strict=False)
        if all(f"{whole}, ".startswith(f"{part}, ") for whole, part in parts):
            longer.append(label)
    return replace(place, label=longer[0]) if len(longer) == 1 else place


def _setting_and_value(given: str) -> tuple[str, str]:
    name, _, value = given.partition("=")
    name = name.strip().replace("-", "_")
    if not name:
        raise InputError(f"{given!r} names no setting; give its name before the sign, as in labels=100.")
    name = ALIASES.get(name, name)
    if name not in (*Config.model_fields, SOURCE):
        meant = near(name, Config.model_fields)
        raise InputError(f"there is no setting {name!r}; {f'did you mean {meant}?' if meant else 'give another.'}")
    return name, value.strip()


def labels_of(baseline: Baseline, groups: Sequence[Group]) -> list[str]:
    """What the groups are called in the settings of the baseline, each label once."""
    return list(dict.fromkeys(baseline.of(group) for group in groups))
