"""A database file for an event loop: what blocks is done in threads.

One thread writes, as one connection does; a few read. A joined connection is the caller's, with
which threads have nothing to do.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from interlock.store.connection import beneath_async
from interlock.store.plan import Transaction
from interlock.store.sqlite.database import READERS_KEPT, Database, Settings
from interlock.store.sqlite.joined import Joined


class AsyncDatabase:
    """An open database, for the tasks of one event loop.

    Attributes:
        blocking: the database itself.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._writing = ThreadPoolExecutor(1, "interlock-writer")
        self._reading = ThreadPoolExecutor(READERS_KEPT, "interlock-reader")
        self.blocking: Database
        self._closed = False
        self.shared, self.together, self.patience = False, True, 0.0
        self.bound = settings.busy_ms / 1000

    async def open(self) -> None:
        """Open the file, and make or migrate the store in it.

        Raises:
            StorageFailure: see `Database`.
        """
        loop = asyncio.get_running_loop()
        self.blocking = await loop.run_in_executor(self._writing, Database, self._settings)

    async def run(self, transaction: Transaction) -> Any:
        """Drive the plan of a transaction."""
        if self._closed:
            return self.blocking.run(transaction)  # which refuses it at once
        executor = self._writing if transaction.writes else self._reading
        return await asyncio.get_running_loop().run_in_executor(
            executor, self.blocking.run, transaction
        )

    def check_writable(self) -> None:
        self.blocking.check_writable()

    @asynccontextmanager
    async def join(self, connection: Any) -> AsyncIterator["Inline"]:
        """Give the runner of a transaction of the caller's, for one call."""
        async with beneath_async(connection) as driver:
            yield Inline(self.blocking.take_part(driver))

    async def close(self) -> None:
        """Close every connection; what was committed stays. Closing twice is fine."""
        if self._closed:
            return
        await asyncio.get_running_loop().run_in_executor(self._writing, self.blocking.close)
        self._closed = True
        self._writing.shutdown(wait=False)
        self._reading.shutdown(wait=False)


class Inline:
    """Runs on the caller's connection, which belongs to the caller's thread, at once."""

    def __init__(self, joined: Joined) -> None:
        self._joined = joined

    async def run(self, transaction: Transaction) -> Any:
        return self._joined.run(transaction)
