"""A project: data that arrive as tasks, people who label them, a model that learns.

`project.Project` holds it together, `settings` has its settings. Data come in through `new_items`, `images`, `tables`,
`uploads` and `tasks`; `encoders` and `task_inputs` turn them into inputs of a model. `people_steps` are the steps of
the loop with people, `people_state` is what these pass on, `picking` says which items a round has, `given_labels` reads
labels from files, and `learned` has the networks. `forgetting` and `erasing` remove items. `estimates`, `stopping`,
`quality`, `advice` and `pool_map` tell how good model and labels are. `exporting` writes both out, with `loader` and
`table_encoder` as files of the export, and `embedding` lends the model to `accuacl embed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.labeling.project.advice import Advice as Advice, Doubts as Doubts, advise as advise
    from accuacl.labeling.project.directory import check_free as check_free
    from accuacl.labeling.project.embedding import open_for_embedding as open_for_embedding
    from accuacl.labeling.project.erasing import (
        describe_item as describe_item,
        unreadable_images as unreadable_images,
        why_unreadable as why_unreadable,
    )
    from accuacl.labeling.project.estimates import (
        ClassEstimate as ClassEstimate,
        Estimate as Estimate,
        Estimates as Estimates,
        RoundAccuracy as RoundAccuracy,
        by_class as by_class,
        last_predictions as last_predictions,
        mean_over_classes as mean_over_classes,
        training_gain as training_gain,
    )
    from accuacl.labeling.project.exporting import export as export
    from accuacl.labeling.project.given_labels import (
        add_gold as add_gold,
        describe_given as describe_given,
        take_label_file as take_label_file,
    )
    from accuacl.labeling.project.images import (
        LARGEST_IMAGE as LARGEST_IMAGE,
        read_files as read_files,
        read_images as read_images,
    )
    from accuacl.labeling.project.new_items import (
        NewItems as NewItems,
        TableOptions as TableOptions,
        split_by_task as split_by_task,
        task_paths as task_paths,
    )
    from accuacl.labeling.project.pool_map import PoolMap as PoolMap
    from accuacl.labeling.project.project import (
        Project as Project,
        load_learning as load_learning,
    )
    from accuacl.labeling.project.quality import (
        Quality as Quality,
        likely_mistakes as likely_mistakes,
        measure_quality as measure_quality,
        unlearned_guesses as unlearned_guesses,
    )
    from accuacl.labeling.project.settings import (
        ProjectSettings as ProjectSettings,
        make as make,
    )
    from accuacl.labeling.project.state import (
        LearningLog as LearningLog,
        ProjectState as ProjectState,
        describe_budget as describe_budget,
        describe_sample as describe_sample,
    )
    from accuacl.labeling.project.stopping import Measured as Measured, predicted_accuracy as predicted_accuracy
    from accuacl.labeling.project.tables import (
        read_table as read_table,
        read_texts as read_texts,
        read_vectors as read_vectors,
    )
    from accuacl.labeling.project.tasks import (
        Item as Item,
        TaskInfo as TaskInfo,
        Tasks as Tasks,
        read_like as read_like,
        relocate_data as relocate_data,
    )
    from accuacl.labeling.project.trust import check_trusted as check_trusted, trust_code as trust_code
    from accuacl.labeling.project.uploads import (
        LARGEST_UPLOAD as LARGEST_UPLOAD,
        UPLOADED as UPLOADED,
        DataColumns as DataColumns,
        Preview as Preview,
        Uploads as Uploads,
        add_data as add_data,
        check_parquet as check_parquet,
        preview as preview,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "advice": ("Advice", "Doubts", "advise"),
        "directory": ("check_free",),
        "embedding": ("open_for_embedding",),
        "erasing": ("describe_item", "unreadable_images", "why_unreadable"),
        "estimates": (
            "ClassEstimate",
            "Estimate",
            "Estimates",
            "RoundAccuracy",
            "by_class",
            "last_predictions",
            "mean_over_classes",
            "training_gain",
        ),
        "exporting": ("export",),
        "given_labels": ("add_gold", "describe_given", "take_label_file"),
        "images": ("LARGEST_IMAGE", "read_files", "read_images"),
        "new_items": ("NewItems", "TableOptions", "split_by_task", "task_paths"),
        "pool_map": ("PoolMap",),
        "project": ("Project", "load_learning"),
        "quality": ("Quality", "likely_mistakes", "measure_quality", "unlearned_guesses"),
        "settings": ("ProjectSettings", "make"),
        "state": ("LearningLog", "ProjectState", "describe_budget", "describe_sample"),
        "stopping": ("Measured", "predicted_accuracy"),
        "tables": ("read_table", "read_texts", "read_vectors"),
        "tasks": ("Item", "TaskInfo", "Tasks", "read_like", "relocate_data"),
        "trust": ("check_trusted", "trust_code"),
        "uploads": (
            "LARGEST_UPLOAD",
            "UPLOADED",
            "DataColumns",
            "Preview",
            "Uploads",
            "add_data",
            "check_parquet",
            "preview",
        ),
    },
)
