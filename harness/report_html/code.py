"""Source code as HTML, and pages' worth of it in little room.

Keywords, comments, literals, directives and built-in names are marked by elements of one letter each.
Where a page holds many sources that are much alike, as a search's candidates are, its lines are kept
once each in a compressed pack, from which the page takes them when they are to be seen."""

import base64
import functools
import json
import re
import zlib

from markupsafe import Markup
from pygments.lexers.c_like import CudaLexer
from pygments.lexers.data import JsonLexer
from pygments.token import Comment, Keyword, Name, Number, String

from .text import visible

# Longer sources, and sources with longer lines, are shown as they are: nobody reads colours there.
MOST_CHARACTERS = 400_000
LONGEST_LINE = 2_000
# What is shown at all.
SHOWN_CHARACTERS = 1_000_000

_ELEMENTS = (
    (Comment.Preproc, "em"),
    (Comment.PreprocFile, "em"),
    (Comment, "i"),
    (Keyword, "b"),
    (Name.Tag, "b"),
    (Name.Builtin, "var"),
    (String, "u"),
    (Number, "u"),
)
_LEXERS = {"cuda": CudaLexer, "json": JsonLexer}


@functools.lru_cache(maxsize=None)
def _element(token):
    return next((element for kind, element in _ELEMENTS if token in kind), "")


def source_lines(source):
    return source.replace("\r\n", "\n").removesuffix("\n").split("\n")


def lines(source, language):
    """The source's lines as HTML, and whether that is all of them."""
    shown = source[:SHOWN_CHARACTERS]
    plain_lines = source_lines(shown)
    if len(shown) > MOST_CHARACTERS or max(map(len, plain_lines)) > LONGEST_LINE:
        return [visible(line) for line in plain_lines], len(shown) == len(source)
    html = [line for part in _parts(plain_lines) for line in _marked(part, language)]
    return html, len(shown) == len(source)


def _parts(plain_lines):
    """A source in parts that end where a line does, outside of comments. Candidates of a search have most
    of them in common."""
    part, comments = [], 0
    for line in plain_lines:
        part.append(line)
        comments += line.count("/*") - line.count("*/")
        if comments == 0 and not line.endswith("\\"):
            yield "\n".join(part)
            part = []
    if part:
        yield "\n".join(part)


@functools.lru_cache(maxsize=1 << 16)
def _marked(text, language):
    """The lines of a part of a source, with elements round what is not plain."""
    done, line, element, pending = [], [], "", ""

    def close():
        if pending:
            html = visible(pending)
            line.append(f"<{element}>{html}</{element}>" if element else str(html))

    for token, part in _LEXERS[language](stripnl=False, ensurenl=False).get_tokens(text + "\n"):
        # Blanks go with what stands before them, so that neighbours of one kind become one element.
        kind = element if part.isspace() else _element(token)
        for index, piece in enumerate(part.split("\n")):
            if index > 0:
                close()
                done.append("".join(line))
                line, pending = [], ""
            if not piece:
                continue
            if kind != element:
                close()
                pending, element = "", kind
            pending += piece
    return done


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def hunks(difference):
    """A unified difference as [first line before, first line after, operations], "3=1-2+" for three
    lines kept, one taken away and two added."""
    found, operations, run, last = [], None, 0, ""

    def close():
        if operations is not None and run:
            operations.append(f"{run}{last}")

    for text in difference.split("\n"):
        match = _HUNK.match(text)
        if match:
            close()
            run, operations = 0, []
            # Of no lines at all, diff names the line before them.
            first = [int(match[i]) + (1 if match[i + 1] == "0" else 0) for i in (1, 3)]
            found.append([*first, operations])
        elif operations is not None and text[:1] in ("+", "-", " "):
            operation = "=" if text[0] == " " else text[0]
            if operation != last:
                close()
                run, last = 0, operation
            run += 1
    close()
    return [[before, after, "".join(operations)] for before, after, operations in found]


class Pack:
    """The code and the charts' data of one page. Whoever shows a piece gets a place for it; the pieces
    come at the end."""

    def __init__(self):
        self._lines = {}
        self._pieces = []
        self._keys = {}

    def _numbers(self, html_lines):
        return [self._lines.setdefault(str(line), len(self._lines)) for line in html_lines]

    def _added(self, piece):
        self._pieces.append(piece)
        return len(self._pieces) - 1

    def _piece(self, key, make):
        if key not in self._keys:
            self._keys[key] = self._added(make())
        return self._keys[key]

    def _file(self, source, language):
        def make():
            html, whole = lines(source, language)
            return {"label": f"{language} source", "lines": self._numbers(html), "whole": whole}
        return self._piece((language, source), make)

    @staticmethod
    def _place(piece):
        return Markup(f'<div class="packed" data-piece="{piece}"></div>')

    def code(self, source, language):
        return self._place(self._file(source, language))

    def difference(self, before, after, difference):
        """Of two sources, as GNU diff found it."""
        files = self._file(before, "cuda"), self._file(after, "cuda")
        return self._place(self._piece(("difference", *files), lambda: {
            "label": "difference", "before": files[0], "after": files[1],
            "hunks": hunks(difference)}))

    def changed_lines(self, difference):
        """A unified difference by itself, without the lines that name the files."""
        marks = {"+": "ins", "-": "del", "@": "b"}
        html = []
        for line in source_lines(difference[:SHOWN_CHARACTERS]):
            if not line.startswith(("--- ", "+++ ")):
                element = marks.get(line[:1])
                shown = f"{visible(line)}\n"
                html.append(f"<{element}>{shown}</{element}>" if element else shown)
        return self._place(self._piece(("lines", difference), lambda: {
            "label": "difference", "lines": self._numbers(html), "whole": True, "ended": True}))

    def replacements(self, changes):
        """What a mutant changes."""
        text = "\n@@\n".join(
            "\n".join(["-" + line for line in change["before"].split("\n")] +
                      ["+" + line for line in change["after"].split("\n")])
            for change in changes)
        return self.changed_lines(text)

    def chart(self, rows, signals):
        """The place of a chart's data, which the page's script draws."""
        return self._added({"rows": rows, "signals": signals})

    def script(self):
        """Everything that was asked for, for the script of the page."""
        if not self._pieces:
            return ""
        content = json.dumps({"lines": list(self._lines), "pieces": self._pieces},
                             ensure_ascii=False, separators=(",", ":"))
        packed = base64.b64encode(zlib.compress(content.encode("utf-8", "replace"), 9)).decode()
        return Markup(f'<script type="application/octet-stream" id="pack">{packed}</script>')
