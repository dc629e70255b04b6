"""The train and memory steps, and their files: weights and memories that later steps find by their handles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from accuacl.base.errors import InputError
from accuacl.base.files import reading, write_bytes
from accuacl.base.progress import OnProgress
from accuacl.base.randomness import derive
from accuacl.experiments import learners
from accuacl.experiments.config import Config, what_to_do
from accuacl.experiments.heads import sample_ids
from accuacl.experiments.loop import Handle, Ids, LoopState
from accuacl.experiments.memory import Memory
from accuacl.experiments.models import Classifier


@dataclass(frozen=True)
class Learning:
    """What all trainings of a run have in common. fetch: raw inputs by id."""

    config: Config
    folder: Path
    training: learners.Training
    transform: learners.Transform
    fetch: Callable[[Ids], torch.Tensor]

    @classmethod
    def of(
        cls,
        config: Config,
        folder: Path,
        device: str,
        transform: learners.Transform,
        fetch: Callable[[Ids], torch.Tensor],
    ) -> Learning:
        """From the settings of the same names, and what follows from them. folder: where the files are."""
        names = {each.name for each in fields(learners.Training)} & set(type(config).model_fields) - {"device"}
        training = learners.Training(
            **{name: getattr(config, name) for name in names},
            capacity=config.memory,
            device=device,
            cycled=config.replay == "cycled",
            balanced=config.sampling == "balanced",
            repeated=config.sampling == "repeated",
            policy=config.memory_policy,
        )
        return cls(config, folder, training, transform, fetch)

    def train(
        self, state: LoopState, model: Classifier, memory: Memory, on_epoch: OnProgress, pools: Sequence[Ids] = ()
    ) -> Handle:
        """Train the model in place on all labels of the task; the handle of its weights.

        pools: the items of each task so far that have no label and are not held out, if the learner learns from them.

        The last round of a learner that changes its memory while it trains (GSS, and ER and DER++ in their original
        form) saves that too, as `memory` of the handle. The other learners make theirs in the step `memory`.
        """
        learner = self._start(state, model, memory, pools)
        with torch.random.fork_rng(devices=[]):  # a user's own network may draw from the global generator, for dropout
            torch.manual_seed(derive(self.config.seed, state.task.index, state.round, "network"))
            learner.train(on_epoch)
        handle: Handle = save_tensors(self.folder / f"{_name(state)}.safetensors", model.state_dict())
        if learner.facts:
            handle["facts"] = learner.facts
        if state.last_round and learner.buffer is not memory:
            handle["memory"] = self._save_memory(state, learner.buffer)
        return handle

    def update_memory(self, state: LoopState, model: Classifier, memory: Memory) -> Handle:
        """The handle of the memory after the task. model: with `state.weights`; memory: as the task found it."""
        assert state.weights is not None
        if "memory" in state.weights:  # made in training
            return dict(state.weights["memory"])
        return self._save_memory(state, learners.remember(self._start(state, model, memory)))

    def load_memory(self, handle: Handle | None) -> Memory:
        return Memory.from_arrays(load_arrays(self.folder, handle)) if handle else Memory.empty()

    def _save_memory(self, state: LoopState, memory: Memory) -> Handle:
        return save_arrays(self.folder / f"{_name(state)}-memory.safetensors", memory.to_arrays())

    def _start(
        self, state: LoopState, model: Classifier, memory: Memory, pools: Sequence[Ids] = ()
    ) -> learners.Learner:
        round = learners.Round(
            model,
            learners.TaskData(state.ids, state.labels, self.fetch(state.ids)),
            memory,
            self.fetch,
            self.training,
            self.transform,
            seed=(self.config.seed, state.task.index, state.round),
            last_round=state.last_round,
            seen=state.seen,
            seen_before=state.seen_before,
            pools=[self.fetch(sample_ids(ids, len(pools), self.config.seed)) for ids in pools if len(ids)],
        )
        return learners.start(self.config.learner, round, self.config.learner_variant)


def memory_result(memory: Memory, handle: Handle | None) -> dict[str, Any]:
    """What the journal records of a memory: all but DER++'s logits, which stay in its file."""
    return {name: array.tolist() for name, array in memory.to_arrays().items() if name != "logits"} | {"file": handle}


def _name(state: LoopState) -> str:
    return f"{state.task.index:03}-{state.round:03}"


def save_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> Handle:
    """Write tensors; the handle to find and check them by."""
    own: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        t = tensor.detach().cpu().contiguous()
        begins = {other.untyped_storage().data_ptr() for other in own.values()}
        own[name] = t.clone() if t.untyped_storage().data_ptr() in begins else t  # shared weights are saved twice
    return _save(path, safetensors.torch.save(own))


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> Handle:
    """Write NumPy arrays; the handle to find and check them by."""
    return _save(path, safetensors.numpy.save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def load_tensors(folder: Path, handle: Handle) -> dict[str, torch.Tensor]:
    """The tensors of a handle, checked to the last bit."""
    return safetensors.torch.load(_read(folder, handle))


def load_arrays(folder: Path, handle: Handle) -> dict[str, np.ndarray]:
    """The NumPy arrays of a handle, checked to the last bit."""
    return safetensors.numpy.load(_read(folder, handle))


def _save(path: Path, data: bytes) -> Handle:
    write_bytes(path, data)
    return {"file": path.name, "sha256": hashlib.sha256(data).hexdigest()}


def _read(folder: Path, handle: Handle) -> bytes:
    path = folder / Path(handle["file"]).name
    if not path.exists():
        raise InputError(f"{path} is missing, but the journal needs it; {what_to_do(folder.parent)}.")
    with reading(path):
        data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != handle["sha256"]:
        raise InputError(f"{path} is damaged: its content is not what was written; {what_to_do(folder.parent)}.")
    return data
