"""No two files declare different types of one full name. The linker takes one of both for all that is inline, a
destructor for instance, and the program does as the other type's. Neither compiler nor linker says so."""
import re
import sys

from sources import ROOMS, ROOT

NAMESPACE = re.compile(r"^(namespace(?: [\w:]+)?) \{|^\}  // (namespace(?: [\w:]+)?)$")
DECLARED = re.compile(r"^(?:struct|class|enum class|enum|union)\s+(\w+(?:::\w+)*)(?:$|\s*:(?!:)|\s*\{|\s+final\b)")


def types_in(text):
    """Full names of the types that a file defines for everybody, outside of functions and classes."""
    found, scopes = [], []
    for line in text.splitlines():
        if edge := NAMESPACE.match(line):
            if edge[1]:
                scopes.append(edge[1].removeprefix("namespace").strip())
            elif scopes:
                scopes.pop()
        elif (declared := DECLARED.match(line)) and "" not in scopes:
            found.append("::".join([*scopes, declared[1]]))
    return found


def places_of(files):
    """Each full name with the files that define it."""
    places = {}
    for file, text in files.items():
        for name in types_in(text):
            places.setdefault(name, []).append(file)
    return places


def check_itself():
    one = "namespace a {\n\nstruct Row {\n};\n\nclass Later;\n\n}  // namespace a\n"
    private = "namespace a {\nnamespace {\n\nstruct Row {\n};\n\n}  // namespace\n\nclass Last\n    : Row {\n};\n}  // namespace a\n"
    assert types_in(one) == ["a::Row"], types_in(one)
    assert types_in(private) == ["a::Last"], types_in(private)
    assert places_of({"one": one, "two": private, "three": one})["a::Row"] == ["one", "three"]


def main():
    check_itself()
    files = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
             for room in ROOMS for path in sorted((ROOT / room).rglob("*")) if path.suffix in (".h", ".cpp")}
    places = places_of(files)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in twice.items():
        print(f"{name} is defined in {' and '.join(where)}: give one of them another name")
    print(f"{len(files)} files, {len(places)} types, {len(twice)} complaints")
    return 1 if twice or len(places) < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
