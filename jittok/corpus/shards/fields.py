"""The fields that documents of a finished corpus have kept (`Options.keep`), as a table."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from jittok.corpus.formats import KEPT
from jittok.corpus.ranges.columns import arrow_for_fields
from jittok.corpus.shards.manifest import read_manifest, store_of
from jittok.corpus.store import Store
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    import pyarrow as pa

FOLDERS = (KEPT, "arrow", "parquet")
"""Where the fields of a shard are: in the first of these that it has a file in."""


def fields(place: str | os.PathLike[str]) -> pa.Table:
    """The fields of all documents of a finished corpus, a folder or URL: a row a document, in the order of the corpus,
    a column of large_string a field. CorpusError where none were kept, and for files that are not as written.

    >>> import jittok.corpus
    >>> table = jittok.corpus.fields("shards")  # doctest: +SKIP
    >>> table["url"][7], jittok.corpus.open("shards")[7]  # doctest: +SKIP
    """
    store = store_of(place)
    manifest = read_manifest(store)
    names = manifest["options"].get("keep", [])
    if not names:
        raise CorpusError(store.place, InWords("a corpus without fields beside its ids"), "one made with --keep")
    pa = arrow_for_fields()
    empty = pa.schema([pa.field(name, pa.large_string()) for name in names]).empty_table()
    return pa.concat_tables([empty, *(fields_of(store, shard, names) for shard in manifest["shards"])])


def fields_of(store: Store, shard: dict[str, Any], names: list[str]) -> pa.Table:
    """The fields of the documents of one shard of a manifest."""
    pa = arrow_for_fields()
    import pyarrow.parquet as pq

    files = {file["name"].partition("/")[0]: file for file in shard["files"]}
    folder = next((folder for folder in FOLDERS if folder in files), None)
    if folder is None:
        raise CorpusError(store.place, InWords("a shard without its fields"), "the manifest that was written")
    file = files[folder]
    where = store.where(file["name"])
    try:
        opened = (store.local / file["name"]).open("rb") if store.local else io.BytesIO(
            store.read(file["name"], 0, file["bytes"])
        )  # fmt: skip
        with opened as raw:
            if folder == "parquet":
                table = pq.read_table(raw, columns=names, use_threads=False)
            else:
                table = pa.ipc.open_file(raw).read_all().select(names)
        table.validate(full=True)
    except (pa.ArrowException, KeyError, EOFError) as error:
        raise CorpusError(where, InWords(" ".join(str(error).split())), "the file that was written") from error
    expected = pa.schema([pa.field(name, pa.large_string()) for name in names])
    if not table.schema.equals(expected):
        found = ", ".join(f"{field.name} of {field.type}" for field in table.schema)
        raise CorpusError(where, InWords(f"columns {found}"), "large_string, as they were written")
    if table.num_rows != shard["documents"]:
        raise CorpusError(where, InWords(f"{table.num_rows} documents"), str(shard["documents"]))
    return table.replace_schema_metadata()
