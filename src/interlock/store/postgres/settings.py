"""How to reach a store on PostgreSQL, and what a connection to it is set to."""

from typing import NamedTuple

POOL_MAX = 10
#: Seconds after which a pool that cannot connect is asked anew, or it would wait ever longer; and
#: what a call may take at least.
RECONNECT = 0.5


class Settings(NamedTuple):
    """How to reach a store.

    Attributes:
        conninfo: a URI for libpq, without settings of ours.
        schema: where the tables are.
        busy_ms: how long to wait for others who hold an instance locked, in milliseconds.
        away_ms: how long a call goes on with a server that is away or does not answer, likewise.
        pool_max: connections, which all handles of one process share that differ in tenant alone.
        together: whether calls that wait are committed together.
        read_only: nothing is created, migrated or written.
        create: whether the store is made where there is none.
    """

    conninfo: str
    schema: str = "interlock"
    busy_ms: int = 30_000
    away_ms: int = 30_000
    pool_max: int = POOL_MAX
    together: bool = True
    read_only: bool = False
    create: bool = True

    @property
    def bound(self) -> float:
        """Seconds after which a call is answered at the latest, counted from its turn."""
        return max(RECONNECT, (self.busy_ms + self.away_ms) / 1000)

    @property
    def where(self) -> str:
        """The store, as its owner knows it, without a password."""
        from psycopg.conninfo import conninfo_to_dict

        told = conninfo_to_dict(self.conninfo)
        host = told.get("host") or told.get("hostaddr") or "localhost"
        port = f":{told['port']}" if told.get("port") else ""
        return (
            f"`{host}{port}/{told.get('dbname') or told.get('user') or ''}`, schema {self.schema}"
        )

    @property
    def session(self) -> dict[str, str]:
        """What each session is set to."""
        return {
            "lock_timeout": str(max(1, self.busy_ms)),  # 0 would be no limit
            "default_transaction_isolation": "read committed",
            "default_transaction_read_only": "on" if self.read_only else "off",
            "jit": "off",  # it pays on long reports, never on statements of milliseconds
            "enable_seqscan": "off",  # a plan made for an empty table outlives its emptiness
            "plan_cache_mode": "force_generic_plan",  # the statements leave one way to find a row
            "row_security": "on",  # off, statements on tables with policies are errors
            "interlock.tenant": "",
        }
