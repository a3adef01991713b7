"""Statements as PDF: their pages, printed by WeasyPrint, which is the extra ``pdf`` of this package."""

from __future__ import annotations

import logging
import threading
from typing import Final, NoReturn

from chargeback import how_to_install
from chargeback.errors import PdfUnavailable

log = logging.getLogger(__name__)

#: The beginning of WeasyPrint's warning of a missing glyph; its arguments are the character and its number.
_NO_GLYPH: Final = ".notdef glyph"
#: How many characters a warning names.
_MOST_NAMED: Final = 10


class _MissingGlyphs(logging.Filter):
    """Collects the characters that no font has, by thread. All other warnings of WeasyPrint are about style rules for
    screens, and dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._of_thread = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR and str(record.msg).startswith(_NO_GLYPH) and record.args:
            self.found.setdefault(str(record.args[0]))  # type: ignore[index]
        return record.levelno >= logging.ERROR

    @property
    def found(self) -> dict[str, None]:
        """Return the missing characters of this thread, in order."""
        if not hasattr(self._of_thread, "found"):
            self._of_thread.found = {}
        found: dict[str, None] = self._of_thread.found
        return found


_missing: Final = _MissingGlyphs()
logging.getLogger("weasyprint").addFilter(_missing)


def to_pdf(html: str) -> bytes:
    """Return a page as a PDF file with tags for assistive technology (PDF/UA). Equal pages result in equal bytes.

    Characters that no font of the system has are printed as boxes; a warning names them.

    Raises:
        PdfUnavailable: WeasyPrint, or a library of the system that it needs, is not installed.
    """
    try:
        from weasyprint import HTML
    except ImportError:
        raise PdfUnavailable(f"PDF files need the extra pdf: {how_to_install('pdf')}") from None
    except OSError as error:
        raise PdfUnavailable(f"PDF files need Pango, which WeasyPrint cannot load: {error}") from None
    _missing.found.clear()
    document: bytes = HTML(string=html, url_fetcher=_refuse).write_pdf(pdf_variant="pdf/ua-1")
    if _missing.found:
        named = " ".join(f"{each} (U+{ord(each):04X})" for each in list(_missing.found)[:_MOST_NAMED])
        more = len(_missing.found) - _MOST_NAMED
        log.warning(
            "no installed font has %s%s: a PDF file shows boxes instead. Install fonts that have them, on Debian "
            "fonts-noto-cjk (Chinese, Japanese, Korean), fonts-noto-core (other scripts), fonts-noto-color-emoji",
            named,
            f" and {more} more" if more > 0 else "",
        )
    return document


def _refuse(url: str, *_args: object, **_kwargs: object) -> NoReturn:
    """Refuse to load a resource: pages are self-contained."""
    raise ValueError(f"a statement loads nothing from elsewhere, not {url}")
