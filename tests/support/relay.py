"""A relay between two networks: it accepts on an inherited socket, and connects to an address in its own network.

``relay.py FD ADDRESS PORT`` ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        there = await asyncio.open_connection(sys.argv[2], int(sys.argv[3]))
    except OSError:
        writer.close()
        return
    await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))


async def _main() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with await asyncio.start_server(_relay, sock=socket.socket(fileno=int(sys.argv[1]))):
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_main())
