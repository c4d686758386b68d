"""Words and numbers as the pages show them. Whatever they hold, they stay text."""

import hashlib
import html
import re

from markupsafe import Markup

# Characters that would show what follows in another order, on another line, or not at all, beside the
# control characters of ASCII and Latin-1. Tab and line feed stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\uffff\U000e0000-\U000e0fff]"
)


def plain(text):
    """The text with what cannot be seen as "[U+202E]"."""
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", str(text).replace("\r\n", "\n"))


def visible(text):
    """The same as HTML, where what cannot be seen stands out."""
    parts = []
    end = 0
    text = str(text).replace("\r\n", "\n")
    for match in _UNSEEN.finditer(text):
        parts.append(html.escape(text[end:match.start()]))
        parts.append(f'<mark class="unseen">U+{ord(match[0]):04X}</mark>')
        end = match.end()
    parts.append(html.escape(text[end:]))
    return Markup("".join(parts))


def shortened(text, length):
    """At most `length` characters on one line."""
    text = " ".join(plain(text).split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def slug(text):
    """A file name that says what it is of, and that no two texts share."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", str(text)).strip(".-")
    if safe == text and len(safe) <= 80:
        return safe
    digest = hashlib.sha256(str(text).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[:60]}-{digest}".lstrip("-")


def milliseconds(nanoseconds):
    """As the tables in the terminal have it: three significant digits or more."""
    value = nanoseconds / 1e6
    return f"{value:.4f}" if value < 1 else f"{value:.3f}"


def in_milliseconds(nanoseconds):
    return f"{milliseconds(nanoseconds)}\u00a0ms"


def percent(value):
    return f"{value:.1f}%"


def scientific(value):
    """"1.2e-06"; "infinite" for what is not finite, which JSON holds as null."""
    return "infinite" if value is None else f"{value:.1e}"


def byte_count(number):
    """"64 MiB", "1.5 KiB", "768 B"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.4g} {unit}"
        number /= 1024
    raise AssertionError


def grouped(number):
    """Thousands apart: "205 909", with a blank at which no line breaks."""
    return f"{number:,}".replace(",", "\u202f")


def counted(number, noun):
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"
