from django.db import models

from .machine import store


class Order(models.Model):
    sku = models.CharField(max_length=100)
    machine = models.CharField(max_length=100, unique=True, editable=False)

    @property
    def state(self) -> str:
        return store().current(self.machine)


class Payment(models.Model):
    order = models.ForeignKey(Order, models.PROTECT, related_name="payments")
    cents = models.PositiveIntegerField()
