"""Tables of what a data set is made of."""

from ..text import byte_count, grouped, milliseconds


def counts_text(entries, name=lambda one: one["name"]):
    """"passed 281, wrong_result 8"."""
    return ", ".join(f"{name(one)} {grouped(one['rows'])}" for one in entries)


def length_text(one):
    return f"from {byte_count(one['from'])}:"


def time_text(one):
    """Powers of two, in milliseconds."""
    return f"from {milliseconds(one['from'])}:"


def rows_by_problem(made_of):
    """Configs as headings, and for each problem its split and how many rows of each."""
    configs, problems = [], {}
    for one in made_of["rows"]:
        if one["config"] not in configs:
            configs.append(one["config"])
        problem = problems.setdefault((one["problem"], one["split"]), {})
        problem[one["config"]] = problem.get(one["config"], 0) + one["rows"]
    return configs, [(problem or "none that can be told", split, [counts.get(config, 0) for config in configs])
                     for (problem, split), counts in sorted(problems.items())]
