"""python3 -m dataset_parquet COMMAND …, which the program starts:

write FOLDER    makes a data set in an empty folder, of rows that come on standard input, a line of JSON each; the
                last line says what the rows do not. Input that ends without it makes nothing.
list FOLDER     prints id, name, problem, sha256, status, device and time of every candidate that has code, a line of
                JSON each
rows FOLDER ID… prints these rows, by id or by name, a line of JSON each
"""

import json
import sys
import traceback
from pathlib import Path

MOST_LINE = 1 << 30


class Failure(Exception):
    """What a user is told, in one line."""


def told(error, what):
    if isinstance(error, OSError):
        return f"{error.filename or what}: {error.strerror or error}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{what}: {type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"


def write(folder):
    from . import card, croissant, parquet

    files, about = parquet.Files(folder), None
    while line := sys.stdin.buffer.readline(MOST_LINE):
        if not line.endswith(b"\n"):
            return 1  # cut short: whoever wrote it says why
        entry = json.loads(line)
        if "about" in entry:
            about = entry["about"]
            break
        files.put(entry["config"], entry["split"], entry["row"], len(line))
    if about is None:
        return 1
    made = files.finish()
    (folder / "README.md").write_text(card.text(about, made), encoding="utf-8", newline="\n")
    (folder / "croissant.json").write_text(croissant.text(about, made, folder), encoding="utf-8", newline="\n")
    return 0


LISTED = ["id", "name", "problem", "sha256", "status", "device", "median_ns"]


def groups(folder, wanted):
    """Each row group of the candidates, with these columns alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from . import parquet

    for path in parquet.candidate_files(folder):
        try:
            file = pq.ParquetFile(path)
            if missing := [name for name in wanted if name not in file.schema_arrow.names]:
                raise Failure(f"{path}: has no columns {', '.join(missing)}")
            for number in range(file.num_row_groups):
                yield file, number, file.read_row_group(number, columns=wanted)
        except pa.ArrowInvalid as error:
            raise Failure(f"{path}: is no Parquet file that can be read: {error}") from None


def print_list(folder):
    for _, _, table in groups(folder, LISTED):
        for row in table.to_pylist():
            if row["sha256"] is not None:  # else its reply held no candidate
                print(json.dumps(row, separators=(",", ":")))


def print_rows(folder, ids):
    found, asked = {}, set(ids)
    for file, number, table in groups(folder, ["id", "name"]):
        for index, names in enumerate(zip(table["id"].to_pylist(), table["name"].to_pylist())):
            for wanted in asked.intersection(names):
                if wanted in found:
                    raise Failure(f"{folder}: {wanted}: several rows are called so; expected an id, which has a hash "
                                  "after its colon")
                found[wanted] = (file, number, index)
    for wanted in ids:
        if wanted not in found:
            raise Failure(f"{folder}: {wanted}: no candidate has this id or name")
        file, number, index = found[wanted]
        row = file.read_row_group(number).slice(index, 1).to_pylist()[0]
        print(json.dumps(_finite(row), separators=(",", ":")))


def _finite(value):
    """JSON has neither infinity nor NaN."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value


def main():
    command, folder, rest = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    try:
        if command == "write":
            sys.exit(write(folder))
        if command == "list":
            print_list(folder)
        else:
            print_rows(folder, rest)
    except Failure as failure:
        sys.exit(f"dataset: {failure}")
    except KeyboardInterrupt:
        sys.exit("dataset: interrupted")
    except Exception as error:
        sys.exit(f"dataset: {told(error, folder)}")


if __name__ == "__main__":
    main()
