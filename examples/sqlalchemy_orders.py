"""Orders of a shop, with SQLAlchemy: a row and its state are committed together, or neither is.

python examples/sqlalchemy_orders.py                        # in the file shop.db
python examples/sqlalchemy_orders.py postgresql://…/shop    # in a database on PostgreSQL
"""

import sys
from pathlib import Path

from sqlalchemy import CheckConstraint, Engine, ForeignKey, create_engine, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

import interlock
from interlock.language import load_declaration

ORDER = load_declaration(Path(__file__).with_name("orders.machine.json"))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "shop_orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    sku: Mapped[str]
    machine: Mapped[str] = mapped_column(unique=True)


class Payment(Base):
    __tablename__ = "shop_payments"
    __table_args__ = (CheckConstraint("cents > 0"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey(Order.id))
    cents: Mapped[int]


class Shop:
    """What the shop does with its orders, each in one transaction."""

    def __init__(self, store: interlock.Store, engine: Engine) -> None:
        Base.metadata.create_all(engine)
        self.store = store
        self.begin = sessionmaker(engine, expire_on_commit=False).begin

    def place(self, sku: str) -> Order:
        with self.begin() as session:
            machine = self.store.instantiate(ORDER, subject_ref=sku, connection=session)
            order = Order(sku=sku, machine=machine)
            session.add(order)
        return order

    def pay(self, order: Order, cents: int) -> None:
        with self.begin() as session:
            self.store.fire(order.machine, "pay", actor_ref="web-shop", connection=session)
            session.add(Payment(order_id=order.id, cents=cents))

    def tell(self, order: Order, what: str) -> None:
        payments = select(func.count()).where(Payment.order_id == order.id)
        with self.begin() as session:
            count = session.scalar(payments)
        print(f"{what}: {order.sku} is {self.store.current(order.machine)}, payments: {count}")


def story(shop: Shop) -> None:
    order = shop.place("green tea")
    shop.tell(order, "placed")
    try:
        shop.pay(order, -450)
    except IntegrityError:
        shop.tell(order, "a negative payment, which the table refuses")
    shop.pay(order, 450)
    shop.tell(order, "paid")
    try:
        shop.pay(order, 450)
    except interlock.InvalidTransition:
        shop.tell(order, "paid again, which the machine refuses")
    for entry in shop.store.history(order.machine):
        print(f"{entry.sequence_number}. {entry.from_state} -> {entry.to_state}")


def main(url: str) -> None:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with interlock.open(url) as store:
        story(Shop(store, engine))
    engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///shop.db")
