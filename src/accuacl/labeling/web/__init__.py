"""The page on which people label. Needs the extra `label`; nothing else in the package imports it but `project serve`.

`server` starts it and `app` puts it together. On its way a request passes `connections`, which bounds how many there
are, `guard`, which checks where it comes from, and `session`, which knows who sent it; `site` is what all requests
share. `pages` renders HTML. A module each has a page with the calls of its script: `api` (labelling), `gallery`,
`review`, `dashboard` (with `charts`), `class_pages`, `people`, `project_page`. `images` sends images, and `trainer` is
the thread that trains meanwhile.
"""

from accuacl.labeling.web.server import serve

__all__ = ["serve"]
