"""A recording of what the service answers, to prove that a refactoring changes no byte of it.

::

    python -m tests.recorded --prepare STORAGE          once, with the code before the change
    python -m tests.recorded STORAGE BEFORE.json
    ...                                                 change the code
    python -m tests.recorded STORAGE AFTER.json
    python -m tests.recorded --compare BEFORE.json AFTER.json

``--prepare`` generates three organisations (``organisations``), whose bills are calculated in several runs, and adds
what people add (``content``): tags, cost categories, views, snoozes, replies, tokens. It also makes the requests
(``questions``, ``reads``, ``callers``, ``changes``) and stores them with the storages, so that they stay the same
whatever later code answers. ``--questions STORAGE`` makes only the requests again.

A recording copies the storages to a temporary folder and serves the copy within the process, with a clock that stands
still, once for everyone and once for callers with roles. It sends all requests; those that change something go to
tenants of their own, last. Then it calls commands (``commands``) and reads the files that they write. The entry of an
answer has its status, its headers, the digest of its body and the first characters of it. ``--bodies FOLDER`` keeps
whole bodies, and ``--only TEXT`` sends only requests whose names contain the text; with both, a difference is found
quickly.

Not compared are the name of the temporary folder; the values of ETags, which depend on how data is cached; the revision
of sums, which is made of when files were written; the number of an unexpected error; the values of the service's own
metrics; and of a PDF file everything but its texts and its number of pages.

``--compare`` prints what differs and exits with 1 if anything does. Storages and recordings stay outside of the
repository.
"""
