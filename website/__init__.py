"""The documentation as a site: built from ``docs/`` by ``make docs``."""
