"""Statements as PDF: their pages, printed by WeasyPrint, which is the extra ``pdf`` of this package."""

from __future__ import annotations

import logging
from typing import NoReturn

from chargeback.errors import PdfUnavailable

# It warns of each rule of the style sheet that is for screens.
logging.getLogger("weasyprint").setLevel(logging.ERROR)


def to_pdf(html: str) -> bytes:
    """Return a page as a PDF file with tags for assistive technology (PDF/UA). The same page gives the same bytes.

    Raises:
        PdfUnavailable: WeasyPrint, or a library of the system that it needs, is not installed.
    """
    try:
        from weasyprint import HTML
    except ImportError:
        raise PdfUnavailable("PDF files need WeasyPrint: `pip install 'chargeback[pdf]'`") from None
    except OSError as error:
        raise PdfUnavailable(f"PDF files need Pango, which WeasyPrint cannot load: {error}") from None
    document: bytes = HTML(string=html, url_fetcher=_refuse).write_pdf(pdf_variant="pdf/ua-1")
    return document


def _refuse(url: str, *_args: object, **_kwargs: object) -> NoReturn:
    """Load nothing: a page is complete in itself."""
    raise ValueError(f"a statement loads nothing from elsewhere, not {url}")
