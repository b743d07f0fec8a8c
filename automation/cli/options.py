"""Flags that several verbs share, and the request that they add up to."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from automation.ledger.request import RentRequest

# Where a flag is not called as the request's field.
_FLAGS = {
    "instance_count": "--count",
    "regions": "--region",
    "endpoint_cidrs": "--cidr",
    "weights_uri": "--weights",
    "weights_kms_key_arn": "--weights-kms-key",
    "pay_usd": "--yes-pay",
    "reservation_id": "--reservation",
}


def money(text: str) -> Decimal:
    """US$ as people write them: 3100.03, 3,100.03 or $3100.03."""
    try:
        return Decimal(text.replace(",", "").removeprefix("$"))
    except InvalidOperation as error:
        raise typer.BadParameter(f"{text} is no amount of US$") from error


Model = Annotated[str, typer.Option(help="Name in the catalogue of models.")]
InstanceType = Annotated[str, typer.Option(help="EC2 instance type.")]
Count = Annotated[int, typer.Option(help="How many instances.")]
Hours = Annotated[int, typer.Option(help="Length: whole days, in hours.")]
Region = Annotated[
    list[str] | None, typer.Option("--region", help="Region to look in; repeat it for more. Default: all enabled.")
]
Weights = Annotated[
    str | None, typer.Option(help="Where in S3 the model lies staged (s3://...). Without: from the hub, on paid time.")
]
WarmCaches = Annotated[
    bool,
    typer.Option("--warm-caches", help="Plan for kernel caches that your image brings along."),
]
MaxFee = Annotated[
    Decimal | None, typer.Option("--max-fee-usd", parser=money, metavar="USD", help="Never pay more than this.")
]
MaxHour = Annotated[
    Decimal | None,
    typer.Option("--max-usd-per-useful-hour", parser=money, metavar="USD", help="Cap on a served hour's price."),
]
ReservationFee = Annotated[
    Decimal | None, typer.Option(parser=money, metavar="USD", help="What that block has cost, for the accounts.")
]
YesPay = Annotated[
    Decimal | None,
    typer.Option(
        "--yes-pay",
        parser=money,
        metavar="USD",
        help="Agree to exactly this fee without being asked. It can never be cancelled.",
    ),
]
Session = Annotated[str | None, typer.Option("--session", help="Session id. Default: the latest.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def request_from(*, warm_caches: bool, **flags: Any) -> "RentRequest":
    """The request of these flags, by the names of its fields; None is a flag that was not given.

    Raises InvalidRequest with all that is wrong, each by its flag."""
    # Imported here: the list of verbs needs neither pydantic nor the catalogue.
    from pydantic import ValidationError

    from automation.ledger.request import RentRequest, catalogue_problems, field_problems, invalid

    given = {name: value for name, value in flags.items() if value is not None}
    bought = given.get("capacity", "block") == "block" and "reservation_id" not in given
    catalogue = catalogue_problems(
        given["model"],
        given["instance_type"],
        given.get("regions", ()),
        hours_to_buy=given["hours"] if bought else None,
    )
    problems = dict(catalogue)
    try:
        request = RentRequest(caches="warm" if warm_caches else "cold", **given)
    except ValidationError as error:
        raise invalid(_by_flag(problems | field_problems(error))) from error
    if problems:
        raise invalid(_by_flag(problems))
    return request


def _by_flag(problems: Mapping[str, str]) -> dict[str, str]:
    return {_FLAGS.get(field, f"--{field.replace('_', '-')}"): what for field, what in problems.items()}
