"""python3 -m report_html DATA FOLDER: makes the pages of the data in an empty folder."""

import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

from . import pages, pictures
from .model import Report

STATIC = Path(__file__).parent / "static"


class Progress:
    """A line on standard error that is rewritten in place, on terminals only."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.shown = sys.stderr.isatty()

    def step(self):
        self.done += 1
        elapsed = time.monotonic() - self.start
        if not self.shown or (elapsed < 1 and self.done < self.total):
            return
        left = elapsed * (self.total - self.done) / self.done
        words = f", about {left:.0f} s left" if elapsed > 2 and left >= 1 else ""
        end = "\r\x1b[K" if self.done == self.total else ""
        sys.stderr.write(f"\r\x1b[K[{self.done}/{self.total}] making pages{words}{end}")
        sys.stderr.flush()


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", errors="backslashreplace", newline="\n")


_site = None  # of the processes that make pages; they are forked with it
_folder = None


def make_page(page):
    path, template, about = page
    write(_folder, path, _site.render(path, template, about))


def make(data, folder):
    global _site, _folder
    _site, _folder = pages.Site(Report(data)), folder
    todo = list(_site.pages())
    progress = Progress(len(todo))
    cores = len(os.sched_getaffinity(0))
    # Forked before the converter starts threads of its own.
    with multiprocessing.get_context("fork").Pool(min(cores, len(todo))) as pool:
        made = pool.imap_unordered(make_page, todo, chunksize=1)
        assets(folder)
        for _ in made:
            progress.step()
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    write(folder, "report.json", json.dumps({"rekernel_report": 1, "files": files}, indent=1) + "\n")


def assets(folder):
    import vl_convert

    for path in STATIC.iterdir():
        write(folder, f"assets/{path.name}", path.read_text(encoding="utf-8"))
    write(folder, "assets/vega.js", vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    write(folder, "assets/charts.js", pages.chart_script(vl_convert.vegalite_to_vega))
    style = (STATIC / "report.css").read_text(encoding="utf-8")
    for name, svg in pictures.draw(_site.report, style, vl_convert.vegalite_to_svg):
        write(folder, f"pictures/{name}.svg", svg)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: python3 -m report_html DATA FOLDER")
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        make(json.loads(data.read_bytes()), folder)
    except OSError as error:
        sys.exit(f"{error.filename or folder}: {error.strerror}")


if __name__ == "__main__":
    main()
