"""Records that cannot be used: the reason, and the line that gives it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from hashlib import sha256

import msgspec

from lra.core.bounds import why_impossible
from lra.core.escape import escape_controls
from lra.core.hashing import DIGITS, value_hash
from lra.core.records import SCHEMA, Record, decode

NOT_OURS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of decoding bytes that are no record, or no JSON, or nested without end."""


class StoreWarning(UserWarning):
    """A record that cannot be used; the text names its place and the remedy."""


class _Schema(msgspec.Struct):
    schema: int | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """Reason why a place in a store holds no usable record, and the remedy."""

    name: str
    """Name of the record's file; in a pack the record's id, where readable, and its line."""
    what: str
    remedy: str

    def warn(self, more: int = 0) -> None:
        """Warn of it in one line, and of `more` other records for the same reason."""
        which = f"records {self.name} and {more} more are" if more else f"record {self.name} is"
        words = escape_controls(f"{which} left out: {self.what}; {self.remedy}")
        warnings.warn(words, StoreWarning, stacklevel=2)


class OtherVersion(Unreadable, frozen=True):
    """A record of another version: one line for the whole store, as there is nothing to say of
    each."""

    newer: bool = False


class StoredIdentity(msgspec.Struct, gc=False):
    """Id and cell as stored in a record, undecoded."""

    id: str
    cell: msgspec.Raw = msgspec.Raw()

    def whole(self) -> bool:
        """Whether the id is the hash of the cell, whatever fields a cell has in this version."""
        # Bytes of a pack are canonical; a loose file has white space.
        if sha256(self.cell).hexdigest()[:DIGITS] == self.id:
            return True
        return value_hash(msgspec.json.decode(self.cell)) == self.id


IDENTITY_DECODER = msgspec.json.Decoder(StoredIdentity)


def parse_record(
    data: bytes,
    id: str,
    name: Callable[[], str],
    remedy: str,
    written: StoredIdentity | None = None,
) -> Record | Unreadable:
    """Return the record with this id from bytes, or why they are none; `remedy` is for damaged
    ones. `written` is their identity, where already decoded; `name` is called where needed."""
    try:
        record = decode(data)
    except NOT_OURS as error:
        return why_unreadable(data, error, name(), remedy)
    if record.schema != SCHEMA:
        # It decodes by chance: its fields may have another meaning.
        return _other_version(name(), record.schema)
    if record.id != id:
        what = f"it holds the record of another cell, {record.id}"
        return Unreadable(name(), what, "rename or delete it")
    if not (written or IDENTITY_DECODER.decode(data)).whole():
        return Unreadable(name(), "its cell is not the one of its id: it was changed", remedy)
    if wrong := why_impossible(record):
        return Unreadable(name(), wrong, remedy)
    return record


def why_unreadable(data: bytes, error: Exception, name: str, remedy: str) -> Unreadable:
    """Tell another version's record from damaged bytes; `error` is that of decoding them."""
    schema = None
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
    except msgspec.ValidationError:
        # JSON, but no record: the first error says where.
        pass
    except NOT_OURS:
        return Unreadable(name, "it is not JSON, perhaps cut off", remedy)
    if schema is not None and schema != SCHEMA:
        return _other_version(name, schema)
    return Unreadable(name, f"it does not fit the schema ({error})", remedy)


def warn_of_unreadable(found: Iterable[Unreadable]) -> None:
    """Warn why each is left out; those of another schema share one line."""
    alike: dict[str, list[Unreadable]] = {}
    for one in found:
        named = not isinstance(one, OtherVersion)
        alike.setdefault(one.name if named else one.what, []).append(one)
    for first, *others in alike.values():
        first.warn(len(others))


def _other_version(name: str, schema: int) -> OtherVersion:
    """Return the reason and the remedy for a record of another schema."""
    newer = schema > SCHEMA
    which, remedy = "an older", "run its cell again"
    if newer:
        which, remedy = "a newer", "update this installation"
    what = f"{which} version wrote it (schema {schema}, this one reads {SCHEMA})"
    return OtherVersion(name, what, remedy, newer=newer)
