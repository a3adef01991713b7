"""The browser page, as files that were built from ``web/``, and how they are served."""

from chargeback.page.serve import PATH, PageFiles, accepts_encoding, page_routes

__all__ = ["PATH", "PageFiles", "accepts_encoding", "page_routes"]
