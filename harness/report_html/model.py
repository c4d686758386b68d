"""The report's data with what pages look up in it."""

from .text import slug


# What not every row of a definition has.
_DEFINITION_DEFAULTS = {"failure": "", "missed": [], "why": ""}


class Device:
    """One folder below results/: whatever of it could be read."""

    def __init__(self, data):
        self.folder = data["folder"]
        self.name = data["name"]
        self.caption = data.get("caption", "")
        self.known = data.get("known", True)  # else its figures count nowhere
        self.ceilings = data.get("ceilings", {})
        self.rows = data.get("rows", [])
        self.fast_p = data.get("fast_p", [])
        self.noise = data["noise"]
        verdicts = data["verdicts"] or {}
        self.errors = verdicts.get("errors", [])
        self.mutants = verdicts.get("mutants", [])
        self.honest = verdicts.get("honest", [])
        self._of_definitions = {
            kind: {row["problem"]: {**_DEFINITION_DEFAULTS, **row} for row in made}
            for kind, made in data.get("of_definitions", {}).items()}

        self._row = {(row["problem"], row["kernel"]): row for row in self.rows}
        self._rows_of, self._errors_of = {}, {}
        for row in self.rows:
            self._rows_of.setdefault(row["problem"], []).append(row)
        for error in self.errors:
            self._errors_of.setdefault(error["problem"], []).append(error)
        fastest = {}
        for row in self.rows:
            if row["status"] == "passed" and row["median_ns"] > 0:
                best = fastest.setdefault(row["problem"], row)
                if row["median_ns"] < best["median_ns"]:
                    fastest[row["problem"]] = row
        self.fastest = list(fastest.values())  # of each problem

    def row(self, problem, kernel):
        return self._row.get((problem, kernel))

    def rows_of(self, problem):
        return self._rows_of.get(problem, [])

    def of_definition(self, kind, problem):
        """The recorded row of a problem's definition: kind "definitions" (beside PyTorch in float64)
        or "mutants"; None without one."""
        return self._of_definitions.get(kind, {}).get(problem)

    def errors_of(self, problem):
        return self._errors_of.get(problem, [])


# What not every search and not every candidate has.
_SEARCH_DEFAULTS = {"published": None, "profiles": []}
_CANDIDATE_DEFAULTS = {
    "percent": None, "change": None, "today": [], "errors": None, "resources": [], "source": "",
    "plan": "", "low_ns": 0, "high_ns": 0, "profile": ""}


class Report:
    def __init__(self, data):
        self.complaints = data["complaints"]
        self.published = data.get("published")
        self.badges = data["badges"]  # what each means
        self.catalog = data["problems"]
        self.problems = [problem for problem in self.catalog if problem["in_charts"]]
        self.kernels = data["kernels"]
        self.devices = [Device(device) for device in data["devices"]]
        self.searches = data["searches"]
        self.claims = data.get("claims", [])  # records of other people's programs
        self.studies = data.get("studies", [])  # what searches of one plan show together
        self.dataset = data.get("dataset")  # what a data set of the records is made of
        self.cheats = data["gallery"]["cheats"]
        self.mutants = {mutant["id"]: mutant for mutant in data["gallery"]["mutants"]}
        self.honest = {kernel["id"]: kernel for kernel in data["gallery"]["honest"]}
        self._problems = {problem["id"]: problem for problem in self.catalog}
        self._kernels = {(kernel["problem"], kernel["name"]): kernel for kernel in self.kernels}
        self._rows = {}
        for device in self.devices:
            for row in device.rows:
                self._rows.setdefault((row["problem"], row["kernel"]), []).append((device, row))
        self._outcomes = {}
        for device in self.devices:
            for outcome in device.mutants + device.honest:
                self._outcomes.setdefault(outcome["id"], []).append((device, outcome))
        self._searches = {search["file"]: search for search in self.searches}
        for search in self.searches:
            search.update({key: value for key, value in _SEARCH_DEFAULTS.items()
                           if key not in search})
            search["source_of"] = {candidate["id"]: candidate.get("source", "")
                                   for candidate in search["candidates"]}
            search["ids"] = {candidate["id"] for candidate in search["candidates"]}
            for candidate in search["candidates"]:
                candidate.update({key: value for key, value in _CANDIDATE_DEFAULTS.items()
                                  if key not in candidate})
        self._give_pages()

    def _give_pages(self):
        taken = set()
        for search in self.searches:
            stem = search["file"].rsplit("/", 1)[-1].removesuffix(".jsonl")
            name = slug(stem)
            while name.lower() in taken:  # some file systems do not tell A from a
                name += "-"
            taken.add(name.lower())
            search["page"] = f"searches/{name}.html"
        for kernel in self.kernels:
            kernel["page"] = f"kernels/{slug(kernel['problem'])}/{slug(kernel['name'])}.html"
        for problem in self.catalog:
            problem.setdefault("source", None)
            problem["page"] = f"problems/{slug(problem['id'])}.html"
        self._kernel_of_candidate = {
            (kernel["origin"]["trajectory"], kernel["origin"]["candidate"]): kernel
            for kernel in self.kernels}

    def device_folder(self, name):
        """The folder below results/ of a device, by which pages are filtered."""
        return next((device.folder for device in self.devices if device.name == name), slug(name))

    def device_name(self, folder):
        return next((device.name for device in self.devices if device.folder == folder), folder)

    def kernels_without_a_time(self):
        return [kernel for kernel in self.kernels if not self.measurements(kernel)]

    def problem(self, name):
        return self._problems.get(name)

    def groups(self):
        """(name, problems) of each group, in the catalog's order."""
        groups = {}
        for problem in self.catalog:
            groups.setdefault(problem["group"], []).append(problem)
        return list(groups.items())

    def kernels_of(self, problem):
        return [kernel for kernel in self.kernels if kernel["problem"] == problem["id"]]

    def kernel_page(self, row):
        """Empty for a row whose kernel is not here."""
        kernel = self._kernels.get((row["problem"], row["kernel"]))
        return kernel["page"] if kernel else ""

    def measurements(self, kernel):
        """(device, row) of every device that the kernel was measured on."""
        return self._rows.get((kernel["problem"], kernel["name"]), [])

    def outcomes(self, name):
        """(device, outcome) of a mutant or an honest kernel, where it was judged."""
        return self._outcomes.get(name, [])

    def search_of(self, kernel):
        return self._searches.get(kernel["origin"]["trajectory"])

    def kernel_of(self, search, candidate):
        return self._kernel_of_candidate.get((search["file"], candidate["id"]))

    def resources(self, kernel):
        """(where the figures come from, kernels), as recorded, else as compiled for this report."""
        for device, row in self.measurements(kernel):
            if row["resources"]:
                return f"recorded on {device.name}", row["resources"]
        search = self.search_of(kernel)
        for candidate in search["candidates"] if search else []:
            if candidate["id"] == kernel["origin"]["candidate"] and candidate.get("resources"):
                return f"recorded by the search, for {candidate['target']}", candidate["resources"]
        compiled = kernel.get("compiled")
        if compiled:
            return f"{compiled['compiler']} for {compiled['target']}", compiled["resources"]
        return "", []
