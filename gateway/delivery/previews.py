"""Which message of a reply that grew becomes that of the tool lines. Pure."""

from collections.abc import Mapping

from gateway.delivery.holder import Key
from gateway.store.rows import OutboxRow
from gateway.views import ReplyView


def find_preview(rows: Mapping[Key, OutboxRow], key: Key) -> Key | None:
    """The reply of the same turn whose growing message stands where the tool lines `key` belong,
    while these have none: it shows the words that the calls came with, and the lines begin with
    those."""
    row = rows[key]
    for other, preview in rows.items():
        if other[0] == key[0] and isinstance(preview.view, ReplyView) and not row.natives:
            shown = bool(preview.natives) and all(one.id for one in preview.natives)
            sure = preview.sending < 0 and not preview.doubtful and not preview.sent
            if shown and sure and preview.position < row.position:
                return other
    return None
