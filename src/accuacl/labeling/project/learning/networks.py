"""The network of a project, and what it makes of the project's items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuacl import learners, models
from accuacl.data import InputRows
from accuacl.experiment import Handle, Ids, device_of, load_tensors
from accuacl.features import Features
from accuacl.labeling.project.inputs import backbones
from accuacl.labeling.project.inputs.task_inputs import TaskInputs, open_task_inputs
from accuacl.labeling.project.items.tasks import Tasks
from accuacl.labeling.project.settings import ProjectSettings


class Networks:
    """Networks with the weights of any step. `opened` names the tasks whose items they can see."""

    def __init__(self, settings: ProjectSettings, folder: Path, tasks: Tasks) -> None:
        self.settings, self.folder, self.tasks = settings, folder, tasks
        self.device = device_of(settings.as_config())
        self.transform = learners.Transform() if settings.frozen else backbones.load(settings).transform
        self.opened: list[dict[str, Any]] = []  # as `prepare` describes them
        self._inputs: TaskInputs | None = None

    def open(self, prepared: dict[str, Any]) -> None:
        """See the items of the next task, which is prepared."""
        self.opened.append(prepared)
        self._inputs = open_task_inputs(self.tasks, self.opened, self.settings)

    @property
    def inputs(self) -> TaskInputs:
        assert self._inputs is not None, "no task is opened yet"
        return self._inputs

    def rows(self, ids: Ids) -> torch.Tensor:
        """What the network takes of these items."""
        return torch.from_numpy(self.inputs[ids])

    def unreadable(self) -> set[int]:
        """Items that could not be embedded: whoever has labelled one has taught nothing."""
        tasks = self.tasks.all()
        return {int(tasks[task].ids[row]) for task, made in enumerate(self.opened) for row in made["bad"]}

    def model(self, weights: Handle | None, classes: int = 0) -> models.Classifier:
        """The network at the start, or with the weights of a handle, whose head has at least `classes` rows."""
        state = load_tensors(self.folder, weights) if weights else None
        model = self._new(len(state["head.weight"]) if state else max(1, classes))
        if state:
            model.load_state_dict(state)
        model.grow(classes, self.settings.seed)
        return model.to(self.device)

    def _new(self, classes: int) -> models.Classifier:
        s = self.settings
        if not s.frozen:
            return backbones.tuned(s, classes)
        return models.build(s.head, classes, seed=s.seed, input_shape=(self.inputs.shape[1],), width=s.width)

    def features(self, model: models.Classifier, ids: Ids, seen: Ids) -> Features:
        """Embeddings of items, and their probabilities among the classes seen."""
        model.grow(int(seen.max()) + 1, self.settings.seed)  # a correction may have named a class not yet trained on
        rows: Any = InputRows(self.inputs, ids)  # type: ignore[arg-type]
        return Features(*models.predict(model, rows, self.transform, seen, device=self.device))

    def frozen_features(self, ids: Ids) -> Features:
        """Items as a frozen network sees them, before anything is learned."""
        return Features(self.inputs[ids], np.ones((len(ids), 1), np.float32))
