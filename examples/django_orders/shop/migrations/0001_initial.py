from django.db import migrations, models

ID = {"auto_created": True, "primary_key": True, "serialize": False, "verbose_name": "ID"}


class Migration(migrations.Migration):
    initial = True

    operations = (
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(**ID)),
                ("sku", models.CharField(max_length=100)),
                ("machine", models.CharField(max_length=100, unique=True, editable=False)),
            ],
        ),
        migrations.CreateModel(
            name="Payment",
            fields=[
                ("id", models.BigAutoField(**ID)),
                ("order", models.ForeignKey("shop.order", models.PROTECT, related_name="payments")),
                ("cents", models.PositiveIntegerField()),
            ],
        ),
    )
