"""The page on which people label. Needs the extra `web`; nothing else in the package imports it but `project serve`.

`server` starts it, `app` puts it together: `guard` stands before every request, `session` says who asks, `pages` are
HTML (with `dashboard` and `charts`), `api` and `views` are what the page's script asks for, `images` and `pictures`
the images, `trainer` the thread that learns meanwhile.
"""

from accuacl.labeling.web.server import serve

__all__ = ["serve"]
