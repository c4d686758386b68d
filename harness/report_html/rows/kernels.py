"""Charts of one kernel: times, plan, samples, errors, roofline."""

import math

from ..text import byte_count, grouped, milliseconds, percent, scientific
from .marks import SMALLEST_SHARE, percent_words, tip, with_ticks


def kernel_bars(row):
    """One kernel beside everything that was timed beside it, and both bounds."""
    rows = []
    for reference in row["references"]:
        if "median_ns" not in reference:
            continue
        role = ", the headline" if reference["id"] == row.get("headline") else ""
        rows.append({
            "row": f"{len(rows):05}", "kind": "kernel",
            "label": f"% of {reference['id']}{role}",
            "value": reference["percent"], "low": reference["low"], "high": reference["high"],
            "words": percent_words(reference),
            "tip": tip(reference["id"], ("time", f"{milliseconds(reference['median_ns'])} ms"),
                       ("interval", f"{percent(reference['low'])} to {percent(reference['high'])}"),
                       ("engine", reference["details"])),
        })
    for bound, name, of in (("ceiling", "ceiling", "at the rates that libraries reach"),
                            ("speed_of_light", "speed of light", "the least for this device")):
        if f"percent_of_{bound}" in row:
            rows.append({
                "row": f"{len(rows):05}", "kind": "kernel", "label": f"% of {name}",
                "value": row[f"percent_of_{bound}"], "words": percent(row[f"percent_of_{bound}"]),
                "tip": tip(name, ("time", f"{milliseconds(row[f'{bound}_ns'])} ms, {of}")),
            })
    return rows


def amount(value, text):
    """An integer of a plan: a number, or an expression of the problem's axes."""
    return value if isinstance(value, str) else text(value)


def plan_steps(kernel):
    """The plan's steps as (name, facts, buffers used)."""
    steps = []
    for launch in kernel["plan"]["launches"]:
        if "memset" in launch:
            steps.append({"name": "memset", "facts": [
                ("buffer", launch["memset"]), ("every byte", str(launch["value"]))],
                "buffers": [(launch["memset"], "set")]})
            continue
        buffers = []
        for argument in launch["args"]:
            if isinstance(argument, str):
                buffers.append((argument, "pointer"))
            elif "tensor_map" in argument:
                buffers.append((argument["tensor_map"]["of"], "tensor map"))
        grid = " × ".join(
            f"{extent['per_sm']} per multiprocessor" if isinstance(extent, dict) else amount(extent, grouped)
            for extent in launch["grid"])
        facts = [("grid", grid), ("block", " × ".join(map(str, launch["block"])))]
        if launch.get("when"):
            facts.append(("only when", launch["when"]))
        if launch.get("cluster"):
            facts.append(("cluster", " × ".join(map(str, launch["cluster"]))))
        if launch.get("dynamic_shared_bytes"):
            facts.append(("dynamic shared memory", amount(launch["dynamic_shared_bytes"], byte_count)))
        for flag in ("cooperative", "programmatic_launch"):
            if launch.get(flag):
                facts.append((flag.replace("_", " "), "yes"))
        scalars = [", ".join(f"{kind} {value}" for kind, value in argument.items())
                   for argument in launch["args"]
                   if isinstance(argument, dict) and "tensor_map" not in argument]
        if scalars:
            facts.append(("scalars", "; ".join(scalars)))
        steps.append({"name": launch["kernel"], "facts": facts, "buffers": buffers})
    return steps


def plan_rows(report, kernel):
    """Lanes of buffers, in the order: inputs, workspaces, output."""
    problem = report.problem(kernel["problem"])
    kinds, sizes = {}, {}
    for tensor in problem["tensors"]:
        if tensor["role"] == "input":
            kinds[tensor["name"]] = "input, read only"
            sizes[tensor["name"]] = tensor["bytes"]
    for name, size in kernel["plan"].get("workspace", {}).items():
        kinds[name], sizes[name] = "workspace", size
    for tensor in problem["tensors"]:
        if tensor["role"] != "input":
            kinds[tensor["name"]], sizes[tensor["name"]] = "output", tensor["bytes"]
    label = {name: f"{name}, {amount(sizes[name], byte_count)}" for name in kinds}
    order = list(kinds)
    steps = plan_steps(kernel)
    step_names = [f"{index} {step['name']}" for index, step in enumerate(steps, 1)]
    used = {name: [index for index, step in enumerate(steps)
                   if any(buffer == name for buffer, _ in step["buffers"])] for name in order}
    rows = [{"part": "lane", "buffer": label[name], "first": step_names[where[0]],
             "last": step_names[where[-1]]} for name, where in used.items() if where]
    for name, step in zip(step_names, steps):
        touched = sorted(order.index(buffer) for buffer, _ in step["buffers"] if buffer in kinds)
        if touched:
            rows.append({"part": "step", "step": name, "top": label[order[touched[0]]],
                         "bottom": label[order[touched[-1]]], "tip": tip(name, *step["facts"])})
        for buffer, how in dict(step["buffers"]).items():
            if buffer in kinds:
                rows.append({
                    "part": "use", "step": name, "buffer": label[buffer],
                    "kind": "set to a byte" if how == "set" else kinds[buffer],
                    "tip": tip(f"{name}: {buffer}", ("is", kinds[buffer]), ("as", how),
                               ("size", amount(sizes[buffer], byte_count)))})
    return rows


def sample_rows(row):
    """Every sample as its distance from the median of its row; quartiles where they are recorded."""
    rows = []

    def add(name, median, low, high, samples):
        who = f"{name}\n{milliseconds(median)} ms"
        if low and high:
            rows.append({
                "part": "quartiles", "who": who, "low": 100 * (low - median) / median,
                "high": 100 * (high - median) / median,
                "tip": tip(name, ("middle half of the samples",
                                  f"{milliseconds(low)} to {milliseconds(high)} ms"))})
        for index, sample in enumerate(samples, 1):
            rows.append({
                "part": "sample", "who": who, "percent": 100 * (sample - median) / median,
                "tip": tip(f"{name}, sample {index}", ("time", f"{milliseconds(sample)} ms"))})

    if row["median_ns"] > 0:
        add(row["kernel"], row["median_ns"], row["low_ns"], row["high_ns"], row["samples_ns"])
    for reference in row["references"]:
        if reference.get("samples_ns"):
            add(reference["id"], reference["median_ns"], 0, 0, reference["samples_ns"])
    return rows


_MEASURES = (
    ("tolerance", "element: 1e-2 + 1e-2·|truth|", lambda bounds: 1.0),
    ("largest", "largest error ÷ rms(truth)", lambda bounds: bounds["largest"]),
    ("rms", "‖error‖ ÷ ‖truth‖", lambda bounds: bounds["rms"]),
    ("strict", "badge strict: 1e-4 of both", lambda bounds: 1.0),
)


def error_rows(report, device, kernel):
    bounds = report.problem(kernel["problem"])["tolerance"]
    kinds = {"library": "library", "scaffold": "definition"}
    rows = []
    for one in device.errors_of(kernel["problem"]):
        kind = "this kernel" if (one["source"] == "committed" and
                                 one["name"] == kernel["name"]) else kinds.get(one["source"])
        if not kind:
            continue
        for key, words, bound_of in _MEASURES:
            if one[key] is None or bound_of(bounds) <= 0:
                continue
            share = one[key] / bound_of(bounds)
            rows.append({
                "kind": kind, "measure": words, "share": max(share, SMALLEST_SHARE),
                "tip": tip(one["name"], (words, scientific(one[key])),
                           ("share of the bound", f"{share:.2g}"))})
    return rows


def roofline_rows(report, device, kernel):
    """Roofs from every rate that the record names, the kernel, and the fastest of each problem."""
    rows = []
    bandwidth = device.ceilings.get("copy_bytes_per_s", 0)
    peaks = {key: value for key, value in device.ceilings.items()
             if key.endswith("_flops_per_s") and value > 0}
    if not bandwidth or not peaks:
        return rows, {}
    points = []
    own = device.row(kernel["problem"], kernel["name"])
    for row in [own, *(row for row in device.fastest if row is not own)] if own else []:
        problem = report.problem(row["problem"])
        if not problem or row.get("operations_per_s", 0) <= 0:
            continue
        this = (row["problem"], row["kernel"]) == (kernel["problem"], kernel["name"])
        points.append({
            "part": "kernel", "this": this, "label": row["kernel"],
            "intensity": problem["operations"] / problem["min_bytes"],
            "rate": row["operations_per_s"] / 1e12,
            "href": "" if this else "../../" + report.kernel_page(row),
            "tip": tip(f"{row['kernel']} for {row['problem']}",
                       ("operations", f"{row['operations_per_s'] / 1e12:.3g} TFLOP/s"),
                       ("bytes", f"{row['bytes_per_s'] / 1e9:.0f} GB/s"))})
    if not any(point["this"] for point in points):
        return rows, {}
    smallest = min(point["intensity"] for point in points) / 3
    top = max(peaks.values())
    largest = max([point["intensity"] for point in points] + [3 * top / bandwidth])
    for key, peak in peaks.items():
        name = key.removesuffix("_flops_per_s").upper()
        ridge = peak / bandwidth
        for x in (smallest, ridge, largest):
            rows.append({"part": "roof", "roof": key, "intensity": x,
                         "rate": min(peak, x * bandwidth) / 1e12})
        rows.append({"part": "name", "intensity": largest, "rate": peak / 1e12,
                     "label": f"{name} product, {peak / 1e12:.0f} TFLOP/s"})
    slope = math.sqrt(smallest * top / bandwidth)  # half way up
    rows.append({"part": "name", "intensity": slope, "rate": slope * bandwidth / 1e12,
                 "label": f"copy, {bandwidth / 1e12:.2f} TB/s"})
    for point in points:
        point["at_right"] = point["intensity"] ** 2 > smallest * largest
    return with_ticks(rows + points, "rate")
