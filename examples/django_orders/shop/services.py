"""What the shop does with its orders, each in one transaction."""

from django.db import connection, transaction

from .machine import ORDER, store
from .models import Order, Payment


def place(sku: str) -> Order:
    with transaction.atomic():
        machine = store().instantiate(ORDER, subject_ref=sku, connection=connection)
        order: Order = Order.objects.create(sku=sku, machine=machine)
    return order


def pay(order: Order, cents: int) -> None:
    with transaction.atomic():
        store().fire(order.machine, "pay", actor_ref="web-shop", connection=connection)
        Payment.objects.create(order=order, cents=cents)
