"""Which groups the sentences of a summary are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accuacl.report.statistics.groups import Cell, Group, has_default_length, has_default_settings
from accuacl.report.statistics.settings import LEARNER_SETTINGS, NEUTRAL_SETTINGS, SETUP_SETTINGS


def by_scale(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """The groups that a summary compares, separately for each scale: those with default settings.

    Where these have nothing to compare AccuACL with, all groups of the default length; failing that, all groups.
    """
    chosen = {}
    for scale in dict.fromkeys(str(group["scale"]) for group in groups):
        at_scale = [group for group in groups if group["scale"] == scale]
        usual = [group for group in at_scale if has_default_settings(group)]
        whole = [group for group in at_scale if has_default_length(group)]
        chosen[scale] = next((candidates for candidates in (usual, whole) if _can_compare(candidates)), at_scale)
    return chosen


def mixes_settings(groups: Iterable[Group]) -> bool:
    """Whether some benchmark occurs with several settings."""
    names = [name for name in (*SETUP_SETTINGS, *LEARNER_SETTINGS) if name not in NEUTRAL_SETTINGS]
    kinds = {(group["benchmark"], *(group[name] for name in names)) for group in groups}
    return len(kinds) > len({benchmark for benchmark, *_ in kinds})


def accuacl_names(groups: Sequence[Group]) -> list[str]:
    """Which AccuACL is compared with the others: that with default options, or all others where it is missing."""
    names = list(dict.fromkeys(group.strategy for group in groups if group["strategy"] == "accuacl"))
    return ["accuacl"] if "accuacl" in names else names


def with_scale(sentence: str, scale: str) -> str:
    """The sentence, which begins with its scale unless that is "".

    >>> with_scale("The best is uniform.", "cpu")
    'At cpu scale, the best is uniform.'
    """
    if not scale:
        return sentence
    return f"At {scale} scale, {sentence[0].lower()}{sentence[1:]}"


def _can_compare(groups: Sequence[Group]) -> bool:
    """Whether some cell has both AccuACL and another strategy."""
    kinds: dict[Cell, set[bool]] = {}
    for group in groups:
        if group["strategy"] != "full":
            kinds.setdefault(group.cell, set()).add(group["strategy"] == "accuacl")
    return any(len(both) == 2 for both in kinds.values())
