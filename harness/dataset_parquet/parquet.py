"""Rows on their way into Parquet files: one folder for each config, shards for each split."""

import math
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from . import columns

# A row group is written once its rows came as so many bytes of JSON: that bounds memory. A shard is closed
# after so many.
GROUP_BYTES = 8 << 20
GROUP_ROWS = 2000
SHARD_BYTES = 2 << 30


class BadRow(Exception):
    """A row that no column takes: a defect of the program that made it."""


def _fitted(value, kind, where):
    """The value as Arrow takes it: numbers that are not finite come as text."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value) if not isinstance(value, str) or value in ("inf", "-inf", "nan") else math.nan
    if pa.types.is_list(kind):
        return [_fitted(one, kind.value_type, where) for one in value]
    if pa.types.is_struct(kind):
        members = {field.name: field.type for field in kind}
        if unknown := value.keys() - members.keys():
            raise BadRow(f"{where}: unknown members {', '.join(sorted(unknown))}")
        return {name: _fitted(value.get(name), member, f"{where}.{name}") for name, member in members.items()}
    return value


class Shards:
    """The files of one config and split. Their names tell how many there are, so they get them at the end."""

    def __init__(self, folder, config, split):
        self.folder, self.config, self.split = folder / config, config, split
        self.schema = columns.schema(config)
        self.kinds = {field.name: field.type for field in self.schema}
        self.rows, self.group_bytes, self.shard_bytes, self.total = [], 0, 0, 0
        self.writer, self.paths = None, []

    def put(self, row, size):
        if unknown := row.keys() - self.kinds.keys():
            raise BadRow(f"{self.config}: unknown columns {', '.join(sorted(unknown))}")
        self.rows.append({name: _fitted(row.get(name), kind, name) for name, kind in self.kinds.items()})
        self.total += 1
        self.group_bytes += size
        self.shard_bytes += size
        if self.group_bytes >= GROUP_BYTES or len(self.rows) >= GROUP_ROWS:
            self.write_group()
        if self.shard_bytes >= SHARD_BYTES:
            self.close_shard()

    def write_group(self):
        if not self.rows:
            return
        if self.writer is None:
            self.folder.mkdir(exist_ok=True)
            self.paths.append(self.folder / f"{self.split}-{len(self.paths):05}.unfinished")
            # Statistics of long texts stay in memory until a file is closed, and nobody filters by them.
            self.writer = pq.ParquetWriter(self.paths[-1], self.schema, compression="zstd", compression_level=6,
                                           write_statistics=False)
        self.writer.write_table(pa.Table.from_pylist(self.rows, self.schema))
        self.rows, self.group_bytes = [], 0

    def close_shard(self):
        self.write_group()
        if self.writer is not None:
            self.writer.close()
        self.writer, self.shard_bytes = None, 0

    def finish(self):
        """The files, under their names."""
        self.close_shard()
        named = []
        for number, path in enumerate(self.paths):
            named.append(path.with_name(f"{self.split}-{number:05}-of-{len(self.paths):05}.parquet"))
            path.rename(named[-1])
        return named


class Files:
    """All files of a data set."""

    def __init__(self, folder):
        self.folder, self._shards = folder, {}

    def put(self, config, split, row, size):
        if (config, split) not in self._shards:
            if config not in columns.CONFIGS or split not in columns.SPLITS:
                raise BadRow(f"no config {config} with a split {split}")
            self._shards[config, split] = Shards(self.folder, config, split)
        self._shards[config, split].put(row, size)

    def finish(self):
        """{config: {split: (rows, paths)}}, in the order of the columns' list."""
        made = {}
        for config in columns.CONFIGS:
            for split in columns.SPLITS:
                if shards := self._shards.get((config, split)):
                    made.setdefault(config, {})[split] = (shards.total, shards.finish())
        return made


_SHARD = re.compile(r"(train|validation|test)-\d{5}-of-\d{5}\.parquet")


def candidate_files(folder):
    """The files of candidates of a data set, whoever made it."""
    found = sorted(path for path in (Path(folder) / "candidates").glob("*.parquet") if _SHARD.fullmatch(path.name))
    if not found:
        raise FileNotFoundError(f"{folder}: no data set of ours: it has no candidates/train-00000-of-00001.parquet")
    return found
