"""Every paid minute belongs to serving or to one cause of loss, and the printed figures add up."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from automation.accounts.minutes import SERVED, minutes_lost
from automation.ledger.record import PhaseSpan, Record, StartupMark
from automation.ledger.request import RentRequest
from planning.block import Block
from planning.costs import LOSS_CAUSES, STARTUP_PHASES

Otherwise = Callable[..., Record]
Minute = Callable[[float], datetime]


def lost(record: Record) -> dict[str, Decimal]:
    return {cause: minutes for cause, minutes in minutes_lost(record).lost.items() if minutes}


def test_a_good_day_loses_its_start_and_its_tail(record: Record) -> None:
    counted = minutes_lost(record)
    assert counted.paid == 1440
    assert [str(counted.lost[cause]) for cause in LOSS_CAUSES] == [
        *("0.70", "2.50", "0.70", "1.20", "4.30", "1.60", "0.75"),
        *("0.00", "50.00"),
    ]
    assert counted.served == Decimal("1378.25")
    assert counted.served_share == Decimal("0.9571")
    assert counted.first_token_seconds == 705


def test_an_instant_belongs_to_the_first_unfinished_phase(told_otherwise: Otherwise, minute: Minute) -> None:
    # The image was there before the GPUs were: its minutes are the device plugin's.
    marks = {"launch": 1, "join": 2, "device_plugin": 6, "image": 4, "weights": 9, "engine": 10, "acceptance": 11}
    startup = tuple(StartupMark(phase=phase, ended=minute(end)) for phase, end in marks.items())
    counted = lost(told_otherwise(startup=startup))
    assert counted["device_plugin"] == 4
    assert "image" not in counted
    assert counted["weights"] == 3


def test_a_phase_without_a_mark_was_over_when_a_later_one_was(told_otherwise: Otherwise, record: Record) -> None:
    without_weights = tuple(mark for mark in record.startup if mark.phase != "weights")
    counted = lost(told_otherwise(startup=without_weights))
    assert counted["weights"] == Decimal("5.90")
    assert "engine" not in counted


def test_a_start_that_never_ended_takes_all_until_the_drain(told_otherwise: Otherwise, record: Record) -> None:
    phases = tuple(span for span in record.phases if span.name != "serve")
    counted = minutes_lost(told_otherwise(startup=record.startup[:4], phases=phases, acceptance=()))
    assert counted.served == 0
    assert counted.first_token_seconds is None
    assert counted.lost["weights"] == Decimal("1384.90")
    assert counted.lost["tail"] == 50


def test_starting_anew_while_serving_is_a_restart(told_otherwise: Otherwise, record: Record, minute: Minute) -> None:
    again = (
        PhaseSpan(name="start", started=minute(600), ended=minute(606)),
        PhaseSpan(name="accept", started=minute(606), ended=minute(607.5)),
        PhaseSpan(name="serve", started=minute(607.5), ended=minute(1390)),
    )
    before = tuple(replace(span, ended=minute(600)) if span.name == "serve" else span for span in record.phases)
    counted = minutes_lost(told_otherwise(phases=(*before[:6], *again, *before[6:])))
    assert counted.lost["restart"] == Decimal("7.50")
    assert counted.served == Decimal("1370.75")


def test_whoever_slept_through_the_drain_served_until_eks_took_the_nodes(
    told_otherwise: Otherwise, record: Record, minute: Minute
) -> None:
    late = tuple(
        replace(span, started=minute(2000), ended=minute(2001)) if span.name in ("drain", "destroy") else span
        for span in record.phases
    )
    assert minutes_lost(told_otherwise(phases=late)).lost["tail"] == 40


def test_a_session_ended_early_loses_the_rest_to_the_tail(
    told_otherwise: Otherwise, record: Record, minute: Minute
) -> None:
    early = tuple(replace(span, started=minute(300)) if span.name == "drain" else span for span in record.phases)
    assert minutes_lost(told_otherwise(phases=early)).lost["tail"] == 1140


def test_on_demand_is_paid_from_the_first_node_to_the_end_of_the_drain(
    told_otherwise: Otherwise, on_demand: RentRequest
) -> None:
    counted = minutes_lost(told_otherwise(request=on_demand))
    assert counted.paid == 1394
    assert counted.lost["tail"] == 4


def test_a_session_without_anything_paid_has_no_minutes(told_otherwise: Otherwise) -> None:
    counted = minutes_lost(told_otherwise(block=None, phases=()))
    assert counted.paid == counted.served == counted.served_share == 0


BLOCK_START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
instants = st.integers(-3_600_000_000, 90_000_000_000).map(lambda us: BLOCK_START + timedelta(microseconds=us))
spans = st.builds(
    PhaseSpan,
    name=st.sampled_from(["start", "accept", "serve", "drain", "destroy"]),
    started=instants,
    ended=st.none() | instants,
)
marks = st.builds(StartupMark, phase=st.sampled_from(STARTUP_PHASES), ended=instants)


@given(
    phases=st.lists(spans, max_size=9).map(tuple),
    startup=st.lists(marks, max_size=9).map(tuple),
    length=st.integers(3_600_000_001, 86_400_000_000),
)
def test_minutes_lost_and_served_add_up_exactly_whatever_happened(
    phases: tuple[PhaseSpan, ...], startup: tuple[StartupMark, ...], length: int
) -> None:
    block = Block(
        reservation_id="cr-0a1b2c3d4e5f60718",
        offering_id=None,
        instance_type="p6-b300.48xlarge",
        instance_count=1,
        region="us-west-2",
        availability_zone="us-west-2b",
        availability_zone_id="usw2-az2",
        start=BLOCK_START,
        end=BLOCK_START + timedelta(microseconds=length),
        fee_usd=Decimal(1),
    )
    told = Record(
        session="s",
        mode="aws",
        account_id="1",
        opened=BLOCK_START,
        request=RentRequest(endpoint_cidrs=("198.51.100.7/32",)),
        block=block,
        phases=phases,
        startup=startup,
    )
    counted = minutes_lost(told)
    assert sum(counted.lost.values()) + counted.served == counted.paid
    assert all(minutes >= 0 for minutes in (*counted.lost.values(), counted.served))
    assert set(counted.lost) == set(LOSS_CAUSES)
    assert [stretch.start for stretch in counted.stretches[1:]] == [stretch.end for stretch in counted.stretches[:-1]]
    assert counted.stretches[0].start == 0
    assert counted.stretches[-1].end == counted.paid
    assert {stretch.cause for stretch in counted.stretches} <= {SERVED, *LOSS_CAUSES}


def test_figures_have_two_places_so_that_a_reader_can_add_them(record: Record) -> None:
    counted = minutes_lost(record)
    assert {-figure.as_tuple().exponent for figure in (*counted.lost.values(), counted.served, counted.paid)} == {2}
