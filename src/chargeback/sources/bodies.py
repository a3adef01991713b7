"""The body of a response, decompressed as it arrives and never larger than its limit.

A few kilobytes of gzip can decompress to gigabytes. So no library decompresses whole chunks: decompression stops at the
limit.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from chargeback.errors import SourceTooLarge, SourceUnavailable

#: The accepted encodings; others are refused.
ACCEPTED: Final = "gzip"

_MEBIBYTE: Final = 1024 * 1024
#: Makes zlib accept both its own header and that of gzip.
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS


class Body:
    """The part of a response body that has arrived.

    ``encoding`` is the response's ``Content-Encoding``; ``largest`` is the limit in bytes, once decompressed;
    ``address`` names the source in errors.

    Raises:
        SourceUnavailable: the encoding is not an accepted one.
    """

    def __init__(self, encoding: str, largest: int, address: str) -> None:
        self._largest = largest
        self._address = address
        self._content = bytearray()
        names = [name for each in encoding.split(",") if (name := each.strip().lower()) not in {"", "identity"}]
        if len(names) > 1 or set(names) - {"gzip", "x-gzip", "deflate"}:
            raise SourceUnavailable(f"{address} responded in an encoding that was not requested: {encoding[:60]!r}")
        self._is_compressed = bool(names)
        self._stream: Any = None

    def add(self, chunk: bytes) -> None:
        """Add data that has arrived.

        Raises:
            SourceTooLarge: the body is larger than the limit.
            SourceUnavailable: it is not compressed with its encoding.
        """
        if not self._is_compressed:
            self._append(chunk)
            return
        while chunk:
            if self._stream is None:
                self._stream = zlib.decompressobj(_ANY_HEADER)
            try:
                # One byte beyond the limit distinguishes a body that is too large from one that just fits.
                self._append(self._stream.decompress(chunk, self._largest - len(self._content) + 1))
            except zlib.error:
                raise SourceUnavailable(f"the response of {self._address} cannot be decompressed") from None
            if self._stream.eof:  # another member may follow
                chunk, self._stream = self._stream.unused_data, None
            else:
                chunk = self._stream.unconsumed_tail

    def _append(self, content: bytes) -> None:
        if len(self._content) + len(content) > self._largest:
            limit = f"{self._largest / _MEBIBYTE:.3g} MiB"
            raise SourceTooLarge(f"the response of {self._address} is larger than the limit of {limit}")
        self._content += content

    def finish(self) -> bytes:
        """Return the whole body.

        Raises:
            SourceUnavailable: it is incomplete.
        """
        if self._stream is not None:
            raise SourceUnavailable(f"the response of {self._address} is truncated")
        return bytes(self._content)
