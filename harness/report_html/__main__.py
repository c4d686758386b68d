"""python3 -m report_html FOLDER [PICTURE...] <DATA: makes the pages of the data in an empty folder, or
pictures of theirs alone ("reference-h200.svg"), below pictures/ there."""

import json
import multiprocessing
import os
import sys
import time
import traceback
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


class Failure(Exception):
    """What a user is told, in one line."""


def told(error, what):
    if isinstance(error, OSError):
        return Failure(f"{error.filename or what}: {error.strerror}")
    place = traceback.extract_tb(error.__traceback__)[-1]
    return Failure(f"{what}: {type(error).__name__}: {error} "
                   f"({Path(place.filename).name}, line {place.lineno})")


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", errors="backslashreplace", newline="\n")


_site = None  # of the processes that make pages; they are forked with it
_folder = None


def make_page(page):
    path, template, about = page
    try:
        write(_folder, path, _site.render(path, template, about))
    except Exception as error:  # which would come through the pipe without its place
        raise told(error, path) from None


def vega_script(vl_convert):
    """Vega for the browser. The converter takes a second to put it together, so it is kept beside the
    converter, with which it goes."""
    kept = Path(vl_convert.__file__).parent / "vega-embed.js"
    if kept.is_file():
        return kept.read_text(encoding="utf-8")
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    try:
        unfinished = kept.with_name(f"{kept.name}.{os.getpid()}")
        unfinished.write_text(script, encoding="utf-8")
        unfinished.rename(kept)
    except OSError:
        pass  # then it is made again the next time
    return script


def make_assets(folder):
    import vl_convert  # here, since it starts threads, which a process that forks should not have

    for path in STATIC.iterdir():
        write(folder, f"assets/{path.name}", path.read_text(encoding="utf-8"))
    write(folder, "assets/vega.js", vega_script(vl_convert))
    write(folder, "assets/charts.js", pages.chart_script(vl_convert.vegalite_to_vega))
    draw_pictures(_site.report, folder)


def draw_pictures(report, folder, wanted=None):
    import vl_convert

    style = (STATIC / "report.css").read_text(encoding="utf-8")
    for name, svg in pictures.draw(report, style, vl_convert.vegalite_to_svg, wanted):
        write(folder, f"pictures/{name}.svg", svg)


def make(data, folder):
    global _site, _folder
    _site, _folder = pages.Site(Report(data)), folder
    todo = list(_site.pages())
    progress = Progress(len(todo))
    cores = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("fork").Pool(min(cores, len(todo))) as pool:
        made = pool.imap_unordered(make_page, todo, chunksize=1)
        make_assets(folder)
        for _ in made:
            progress.step()
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    write(folder, "report.json",
          json.dumps({"rekernel_report": 1, "files": files}, indent=1) + "\n")


def main():
    if sys.version_info < (3, 9):
        sys.exit("report: expected Python 3.9 or newer, got " + sys.version.split()[0])
    if len(sys.argv) < 2:
        sys.exit("usage: python3 -m report_html FOLDER [PICTURE...] <DATA")
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    try:
        data = json.loads(sys.stdin.buffer.read())
        if wanted:
            draw_pictures(Report(data), folder, {Path(name).stem for name in wanted})
        else:
            make(data, folder)
    except Failure as failure:
        sys.exit(f"report: {failure}")
    except KeyboardInterrupt:
        sys.exit("report: interrupted")
    except Exception as error:
        sys.exit(f"report: {told(error, sys.argv[1])}")


if __name__ == "__main__":
    main()
