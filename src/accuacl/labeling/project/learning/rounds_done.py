"""What a call of `Project.advance` has learned and chosen."""

from __future__ import annotations

from pathlib import Path

from accuacl.base.names import counted
from accuacl.experiment import Step, read_steps


class RoundsDone:
    """What has been done since this was made."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._before = {_key(step) for step in read_steps(journal, "train", "query")}

    def learned(self) -> list[str]:
        """A sentence for each round that was learned."""
        answers = {(step.task, step.round): step.result for step in read_steps(self._journal, "label")}
        sentences = []
        for step in self._new("train"):
            assert step.task is not None  # every training has a task and a round
            assert step.round is not None
            answer = answers[step.task, step.round]
            labelled = {item for item, _ in answer["labels"]}
            held = labelled & set(answer["held"])
            count = len(labelled - held) + len(answer.get("late", ()))
            text = f"task {step.task + 1}, round {step.round + 1}: learned from {counted(count, 'label')}"
            sentences.append(text + (f"; {len(held)} more are held out to test it" if held else ""))
        return sentences

    def chosen(self, task: int, round: int) -> int:
        """How many items were chosen for a round; 0 if that was done before."""
        return sum(len(step.result["ids"]) for step in self._new("query") if (step.task, step.round) == (task, round))

    def _new(self, kind: str) -> list[Step]:
        return [step for step in read_steps(self._journal, kind) if _key(step) not in self._before]


def _key(step: Step) -> tuple[object, ...]:
    return step.kind, step.task, step.round, step.finished  # after `forget` a round may be learned again
