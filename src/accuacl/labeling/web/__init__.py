"""The page on which people label. Needs the extra `web`; nothing else in the package imports it but `project serve`.

`server` starts it and `app` puts it together: `guard` checks every request, `session` knows who sent it, `pages` are
HTML (with `dashboard` and `charts`), `api` and `views` answer the page's script (with `reasons` for each example),
`images` and `pictures` send images, and `trainer` is the thread that trains meanwhile.
"""

from accuacl.labeling.web.server import serve

__all__ = ["serve"]
