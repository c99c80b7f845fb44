"""The hooks and guards of `order.machine.yaml`: `interlock send … --engine order_engine:make`."""

import sqlite3

import interlock

STOCK = 100
ON_SQLITE = "INSERT INTO reserved VALUES (?, ?)"
ON_POSTGRES = "INSERT INTO reserved VALUES (%s, %s)"


def make(store: interlock.Store) -> interlock.Engine:
    """Make the engine that runs orders on a store."""
    engine = interlock.Engine(store)

    @engine.hook("reserve_stock")
    def reserve_stock(tx: interlock.Tx) -> None:
        tx.connection.execute("CREATE TABLE IF NOT EXISTS reserved (order_id TEXT, qty INTEGER)")
        is_sqlite = isinstance(tx.connection, sqlite3.Connection)
        insert = ON_SQLITE if is_sqlite else ON_POSTGRES
        tx.connection.execute(insert, (tx.id, tx.data["qty"]))

    @engine.guard("in_stock")
    def in_stock(tx: interlock.Tx) -> bool:
        (reserved,) = tx.connection.execute("SELECT sum(qty) FROM reserved").fetchone()
        return bool(reserved <= STOCK)

    return engine
