from django.core.management.base import BaseCommand
from django.db import IntegrityError

import interlock

from ...machine import store
from ...models import Order
from ...services import pay, place


class Command(BaseCommand):
    help = "Tells the story of an order."

    def handle(self, *_: object, **__: object) -> None:
        order = place("green tea")
        self.tell(order, "placed")
        try:
            pay(order, -450)
        except IntegrityError:
            self.tell(order, "a negative payment, which the table refuses")
        pay(order, 450)
        self.tell(order, "paid")
        try:
            pay(order, 450)
        except interlock.InvalidTransition:
            self.tell(order, "paid again, which the machine refuses")
        for entry in store().history(order.machine):
            self.stdout.write(f"{entry.sequence_number}. {entry.from_state} -> {entry.to_state}")

    def tell(self, order: Order, what: str) -> None:
        count = order.payments.count()
        self.stdout.write(f"{what}: {order.sku} is {order.state}, payments: {count}")
