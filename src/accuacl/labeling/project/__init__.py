"""A project: data that arrive as tasks, people who label them, a model that learns.

`project.Project` holds it together; `settings` has its settings and `making` those of a new one. Around it, in the
order in which data pass through: `items` (data come in), `inputs` (what the model takes of them), `learning` (the loop
with people; `loading` loads torch for it), `measuring` (how good the model is), `results` (what goes out).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.labeling.project.advice import Advice as Advice, Doubts as Doubts, advise as advise
    from accuacl.labeling.project.backbones import load_learning as load_learning
    from accuacl.labeling.project.embedding import open_for_embedding as open_for_embedding
    from accuacl.labeling.project.erasing import (
        said_of as said_of,
        unreadable_images as unreadable_images,
        why_unreadable as why_unreadable,
    )
    from accuacl.labeling.project.estimates import (
        ClassEstimate as ClassEstimate,
        Estimate as Estimate,
        Estimates as Estimates,
        Moment as Moment,
        by_class as by_class,
        gain as gain,
        mean_over_classes as mean_over_classes,
    )
    from accuacl.labeling.project.exporting import export as export
    from accuacl.labeling.project.images import LARGEST_IMAGE as LARGEST_IMAGE, read_images as read_images
    from accuacl.labeling.project.label_file import Taken as Taken, add_gold as add_gold, take_file as take_file
    from accuacl.labeling.project.new_items import (
        NewItems as NewItems,
        TableOptions as TableOptions,
        by_task as by_task,
        parts_of as parts_of,
    )
    from accuacl.labeling.project.places import relocate_data as relocate_data
    from accuacl.labeling.project.pool_map import PoolMap as PoolMap
    from accuacl.labeling.project.project import Project as Project
    from accuacl.labeling.project.quality import (
        Kappa as Kappa,
        Quality as Quality,
        likely_mistakes as likely_mistakes,
        quality as quality,
    )
    from accuacl.labeling.project.settings import ProjectSettings as ProjectSettings, make as make
    from accuacl.labeling.project.state import ProjectState as ProjectState, RoundsDone as RoundsDone
    from accuacl.labeling.project.stopping import Measured as Measured, foreseen as foreseen
    from accuacl.labeling.project.tables import (
        read_table as read_table,
        read_texts as read_texts,
        read_vectors as read_vectors,
    )
    from accuacl.labeling.project.tasks import Item as Item, TaskInfo as TaskInfo, Tasks as Tasks
    from accuacl.labeling.project.taught import given_text as given_text
    from accuacl.labeling.project.uploads import (
        LARGEST_UPLOAD as LARGEST_UPLOAD,
        UPLOADED as UPLOADED,
        Uploads as Uploads,
        read_like as read_like,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "advice": ("Advice", "advise", "Doubts"),
        "backbones": ("load_learning",),
        "embedding": ("open_for_embedding",),
        "erasing": ("said_of", "unreadable_images", "why_unreadable"),
        "estimates": ("by_class", "ClassEstimate", "Estimate", "Estimates", "gain", "mean_over_classes", "Moment"),
        "exporting": ("export",),
        "images": ("LARGEST_IMAGE", "read_images"),
        "label_file": ("add_gold", "take_file", "Taken"),
        "new_items": ("by_task", "NewItems", "parts_of", "TableOptions"),
        "places": ("relocate_data",),
        "pool_map": ("PoolMap",),
        "project": ("Project",),
        "quality": ("Kappa", "likely_mistakes", "Quality", "quality"),
        "settings": ("make", "ProjectSettings"),
        "state": ("ProjectState", "RoundsDone"),
        "stopping": ("foreseen", "Measured"),
        "tables": ("read_table", "read_texts", "read_vectors"),
        "tasks": ("Item", "TaskInfo", "Tasks"),
        "taught": ("given_text",),
        "uploads": ("LARGEST_UPLOAD", "UPLOADED", "read_like", "Uploads"),
    },
)
