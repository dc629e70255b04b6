"""Label Studio as the page: `sync` pushes picks and pulls annotations, `tasks` is what it shows, `answers` what it
says, `link` the project there. Needs the extra `labelstudio`."""

from accuacl.labeling.label_studio.answers import Pulled
from accuacl.labeling.label_studio.link import TOKEN
from accuacl.labeling.label_studio.sync import pull, push

__all__ = ["TOKEN", "Pulled", "pull", "push"]
