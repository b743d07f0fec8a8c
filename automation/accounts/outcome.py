"""The one rule for how a session ended."""

from ..ledger.record import Record

OK = "ok"


def outcome(record: Record) -> str:
    """ "ok", or the worst of what went otherwise, in a few words.

    "ok" says three things at once: exactly one purchase (or none, on demand or on a block bought before), every check
    of the last acceptance true, and a sweep that found nothing. A sweep that never ran has proved nothing.
    """
    bought_before = record.request.capacity == "on-demand" or record.request.reservation_id is not None
    if not record.sweeps:
        return "not proved empty"
    if record.residual:
        return "something is left"
    if len(record.purchases) > 1:
        return f"{len(record.purchases)} purchases"
    if not (record.purchases or bought_before):
        return "nothing was bought"
    if not record.accepted:
        return "not accepted"
    return OK
