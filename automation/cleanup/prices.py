"""What a left-over costs a day, from the catalogue's list prices."""

from decimal import Decimal

from planning.catalogue import Catalogue, UnknownName

_CENT = Decimal("0.01")
_BYTES_PER_GIB = 1024**3


def per_hour(catalogue: Catalogue, constant: str, quantity: Decimal = Decimal(1)) -> Decimal:
    """US$ a day of something billed by the hour, in cents; 0 when the catalogue has no such price."""
    return _per_day(catalogue, constant, quantity * 24)


def gp3(catalogue: Catalogue, gib: Decimal) -> Decimal:
    """US$ a day of a gp3 volume, in cents."""
    month_days = catalogue.constant("ebs_month_hours").value / 24
    return _per_day(catalogue, "ebs_gp3_usd_per_gib_month", gib / month_days)


def log_storage(catalogue: Catalogue, stored_bytes: int) -> Decimal:
    """US$ a day of what a log group keeps, in cents."""
    month_days = catalogue.constant("ebs_month_hours").value / 24
    return _per_day(catalogue, "log_storage_usd_per_gib_month", Decimal(stored_bytes) / _BYTES_PER_GIB / month_days)


def _per_day(catalogue: Catalogue, constant: str, units: Decimal) -> Decimal:
    try:
        return (catalogue.constant(constant).value * units).quantize(_CENT)
    except UnknownName:
        return Decimal("0.00")
