"""How good a project of benchmarks/projects.py really is, from test sets that no project ever sees."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from project_data import Data

from accuacl.base.progress import ignore
from accuacl.experiments import checkpoints, metrics, models
from accuacl.experiments.learners import Transform
from accuacl.labeling.project import Project, ProjectSettings, Tasks, encoders, task_inputs as inputs


class Judge:
    """Knows the test sets of one data set; they are embedded once."""

    def __init__(self, data: Data, settings: ProjectSettings, tasks: Tasks) -> None:
        self.data, self.settings, self.tasks = data, settings, tasks
        self.raw = lru_cache(maxsize=None)(self._raw)

    def judge(self, project: Project, handle: dict, tasks: int) -> tuple[list[float], float]:
        """Percent right on the test sets of the first tasks, among all classes seen, and the calibration error."""
        state = checkpoints.load_tensors(project.directory / "weights", handle)
        scale = inputs.load_scale(project.tasks)
        s, seen = project.settings, np.array(handle["seen"])
        model = models.build(s.head, len(state["head.weight"]), seed=0, input_shape=scale["mean"].shape, width=s.width)
        model.load_state_dict(state)
        names = {label.id: label.name for label in project.store.classes()}
        accuracies, confidences, hits = [], [], []
        for t in range(tasks):
            x = torch.from_numpy(inputs.scaled(self.raw(t), scale))
            _, p = models.predict(model, x, Transform(), seen)
            said = [names[int(c)] for c in seen[p.argmax(axis=1)]]
            hits.append(np.array([a == b for a, b in zip(said, self.data.answers[t], strict=True)]))
            confidences.append(p.max(axis=1).astype(np.float64))
            weights = None if self.data.weights is None else self.data.weights[t]
            accuracies.append(100 * float(np.average(hits[-1], weights=weights)))
        return accuracies, metrics.calibration_error(np.concatenate(confidences), np.concatenate(hits))

    def _raw(self, t: int) -> np.ndarray:
        """The test set of a task as it is before scaling."""
        if self.data.kind == "vectors":
            return self.data.tests[t]
        if self.data.kind == "texts":
            return encoders.text_encoder(self.settings, self.tasks)(self.data.tests[t])
        tasks = Tasks(self.data.place / "test")
        while len(tasks.all()) <= t:
            tasks.add(self.data.tests[len(tasks.all())])
        inputs.prepare(tasks, tasks.all()[t], self.settings, ignore)
        return np.load(tasks.folder_of(t) / "inputs.npy")
