"""The program's C++ sources as the tests of their style read them: what each includes, and which names it declares.
The reading goes by lines, which clang-format keeps in order; a compiler has the last word wherever it matters."""
import functools
import hashlib
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("ops", "harness", "reference", "replay")

TYPE = re.compile(r"^(?:struct|class|enum class|enum|union)\s+(\w+)", re.MULTILINE)
ALIAS = re.compile(r"^(?:namespace|using) (\w+) =\s*([^;]*);", re.MULTILINE)
TAKEN_OVER = re.compile(r"^using ((?:\w+::)+(\w+));", re.MULTILINE)
PRIVATE_PART = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
# A declaration that begins a line: up to its body, its value or its end.
DECLARATION = re.compile(r"^(?!namespace\b|using\b|template\b)(?:\[\[\w+\]\] )?([A-Za-z][^;{=]*)", re.MULTILINE)


@functools.cache
def text_of(path):
    return pathlib.Path(ROOT / path).read_text(encoding="utf-8")


def headers():
    """Paths of all headers below the root."""
    return sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.h"))


@functools.cache
def includes(path):
    """The headers of ours that a file includes by itself, in its order."""
    named = re.findall(r'^#include "([^"]+\.h)"', text_of(path), re.MULTILINE)
    return tuple(name for name in named if (ROOT / name).is_file())


@functools.cache
def closure(path):
    """A file with all headers of ours that it includes, themselves or through others."""
    found, waiting = set(), [str(path)]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += includes(file)
    return frozenset(found)


@functools.cache
def other_includes(path):
    """The headers of others, in angle brackets, that a file includes itself or through headers of ours."""
    return frozenset(name for file in closure(path) for name in re.findall(r"^#include <([^>]+)>", text_of(file), re.MULTILINE))


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def declared(text):
    """What a text declares at the beginnings of lines: each name with what it is, functions with their parameters."""
    names = {}
    taken = [(name, what) for what, name in TAKEN_OVER.findall(text)]
    for name, what in ALIAS.findall(text) + taken:
        names.setdefault(name, set()).add("= " + " ".join(what.split()))
    for declaration in DECLARATION.findall(text):
        words = " ".join(declaration.split())
        if kind := TYPE.match(words):
            names.setdefault(kind[1], set()).add("type")
        elif function := re.match(r"[^(]*?(\w+) ?\((.*)\)", words):
            parameters = re.sub(r" ?\b\w+(?=,|$)", "", function[2])  # types without names
            names.setdefault(function[1], set()).add("(" + parameters)
        elif variable := re.match(r".*?(\w+)(?:\[.*\])*$", words):
            names.setdefault(variable[1], set()).add("variable")
    return names


@functools.cache
def public_names(path):
    """What a header declares for everybody."""
    return declared(text_of(path))


@functools.cache
def private_names(path):
    """What a source declares for itself alone."""
    text = text_of(path)
    names = {}
    aliases = "\n".join(found[0] for pattern in (ALIAS, TAKEN_OVER) for found in pattern.finditer(text))
    for part in [aliases, *PRIVATE_PART.findall(text)]:
        for name, what in declared(part).items():
            names.setdefault(name, set()).update(what)
    if re.search(r"^int main\(", text, re.MULTILINE):
        names["main"] = {"function"}
    return names


def clash(one, other):
    """A name that two sources in one unit would declare differently, or twice; else nothing."""
    for name in one.keys() & other.keys():
        for a in one[name]:
            for b in other[name]:
                same_alias = a == b and a.startswith("=")
                overloads = a != b and a.startswith("(") and b.startswith("(")
                if not same_alias and not overloads:
                    return name
    return None
