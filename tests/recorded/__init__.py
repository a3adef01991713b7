"""A recording of the service's responses, to prove that a refactoring changes no byte of them.

::

    python -m tests.recorded --prepare STORAGE          once, with the code before the change
    python -m tests.recorded STORAGE BEFORE.json
    ...                                                 change the code
    python -m tests.recorded STORAGE AFTER.json
    python -m tests.recorded --compare BEFORE.json AFTER.json

``--prepare`` generates three organisations (``organisations``), whose bills are calculated in several runs, and adds
what users add (``content``): tags, cost categories, views, snoozes, replies, tokens. It also creates the requests
(``questions``, ``reads``, ``callers``, ``changes``) and stores them with the storages, so that they do not depend on
the responses of later code. ``--questions STORAGE`` creates only the requests again.

A recording copies the storages to a temporary folder and serves the copy within the process, with a stopped clock,
once for everyone and once for callers with roles. It sends all requests; those that change something come last and go
to separate tenants. Then it calls commands (``commands``) and reads the files that they write. The entry of a response
has its status, its headers, the digest of its body and its first characters. ``--bodies FOLDER`` stores complete
bodies, and ``--only TEXT`` sends only requests whose names contain the text; together they help to find a difference
quickly.

Not compared are the name of the temporary folder; the values of ETags, which depend on caching; the revision of sums,
which depends on when files were written; the id of an unexpected error; the values of the service's own metrics; and
everything in a PDF file except its text and its number of pages.

``--compare`` prints the differences and exits with 1 if there are any. Storages and recordings are kept outside of the
repository.
"""
