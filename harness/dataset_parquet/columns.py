"""The configs of a data set and their columns: one list, of which the Parquet schemas, the data card and Croissant are
made."""

import pyarrow as pa

STRINGS = pa.list_(pa.string())
NUMBERS = pa.list_(pa.int64())
TURNS = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
ERRORS = pa.struct([(name, pa.float64()) for name in ("max_abs", "rms", "truth_rms", "tolerance_share")])
REFERENCES = pa.list_(pa.struct([
    ("id", pa.string()), ("details", pa.string()), ("median_ns", pa.int64()), ("percent", pa.float64()),
    ("percent_low", pa.float64()), ("percent_high", pa.float64()), ("samples_ns", NUMBERS),
    ("kernel_samples_ns", NUMBERS)]))
RESOURCES = pa.list_(pa.struct([("name", pa.string())] + [
    (name, pa.int64()) for name in ("registers", "static_shared_bytes", "stack_bytes", "spill_store_bytes",
                                    "spill_load_bytes")]))
MODULES = pa.list_(pa.struct([(name, pa.string()) for name in ("file", "language", "text", "base64")]))
CHANGES = pa.list_(pa.struct([("before", pa.string()), ("after", pa.string())]))
OUTCOMES = pa.list_(pa.struct([
    ("device", pa.string()), ("status", pa.string()), ("badges", STRINGS), ("check", pa.string()),
    ("message", pa.string()), ("measured", pa.string())]))
METRICS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.float64()), ("text", pa.string())]))

TEXT, WHOLE, REAL, TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()

_EVERY_ROW = [
    ("id", TEXT, "stable identifier: the name, and a hash of what the row tells"),
    ("name", TEXT, "what the project calls it"),
    ("problem", TEXT, "id of the problem"),
    ("family", TEXT, "problems of one family have much the same code, and are in the same split"),
    ("contamination_keys", STRINGS, "problems of published benchmarks in its family"),
    ("license", TEXT, "SPDX identifier"),
]
_OF_A_SEARCH = [
    ("search", TEXT, "name of the search"),
    ("round", WHOLE, "its round; seeds count as the one before the first"),
]

CONFIGS = {
    "candidates": ("Kernels with the judge's verdict and times.", _EVERY_ROW + [
        ("origin", TEXT, "search, results (committed kernels, measured by themselves) or imported"),
        *_OF_A_SEARCH,
        ("candidate", TEXT, "its id in the search, or the kernel's name"),
        ("from", TEXT, "of imported rows: which file and entry, and whose"),
        ("model", TEXT, "which model wrote it, as the search calls it"),
        ("replies", TEXT, "how the search got its replies"),
        ("problem_title", TEXT, "the problem in a line"),
        ("problem_definition", STRINGS, "its definition, a statement each"),
        ("problem_file", TEXT, "the problem's file: sizes, inputs, tolerance"),
        ("idea_title", TEXT, "the idea that was asked for, in a few words"),
        ("idea_asked", TEXT, "the idea that was asked for"),
        ("idea", TEXT, "what the candidate says of itself"),
        ("arch", TEXT, "the lowest target"),
        ("code", TEXT, "CUDA C++; null where the reply held no candidate, and where `modules` has it"),
        ("modules", MODULES, "PTX or machine code of captured programs: text, or base64 of what is no text"),
        ("program", TEXT, "of imported rows: the Python program that was captured"),
        ("code_bytes", WHOLE, "its length"),
        ("plan", TEXT, "the launch plan: kernel.json"),
        ("sha256", TEXT, "of everything that decides what runs"),
        ("status", TEXT, "the verdict"),
        ("message", TEXT, "why it is not passed"),
        ("check", TEXT, "which check refused the values"),
        ("badges", STRINGS, "strict, robust, deterministic, any_size"),
        ("badge_notes", TEXT, "why a badge was refused"),
        ("errors", ERRORS, "against a float64 truth: largest, rms, the truth's rms, share of the tolerance"),
        ("median_ns", WHOLE, "time: median of the samples"),
        ("low_ns", WHOLE, "their 25th percentile"),
        ("high_ns", WHOLE, "their 75th percentile"),
        ("samples_ns", NUMBERS, "every timed run; empty in searches from before samples were kept"),
        ("reference", TEXT, "the library configuration that percentages divide by"),
        ("reference_ns", WHOLE, "its median in the same run"),
        ("reference_samples_ns", NUMBERS, "its samples"),
        ("percent_of_reference", REAL, "reference's time ÷ kernel's, in percent"),
        ("percent_low", REAL, "its 95% confidence interval: lower end"),
        ("percent_high", REAL, "upper end"),
        ("references", REFERENCES, "every reference that was timed beside it, the headline first"),
        ("reference_noise_ppm", WHOLE, "the reference timed against itself: half width of the 95% interval"),
        ("ceiling_ns", WHOLE, "time at the rates that copy and matrix product reached in the run"),
        ("speed_of_light_ns", WHOLE, "no time can be below it"),
        ("resources", RESOURCES, "what the compiler says of each kernel"),
        ("compile_log", TEXT, "the compiler's words"),
        ("device", TEXT, "where it was judged"),
        ("target", TEXT, "architecture that it was compiled for"),
        ("toolchain", TEXT, "compiler, libraries, driver"),
        ("judge", TEXT, "digest of the sources that judged it; empty in searches from before it was kept"),
        ("measured", TEXT, "date, where one was kept"),
        ("parents", STRINGS, "kernels that its prompt showed"),
        ("parent", TEXT, "the first of them, which the differences are to"),
        ("difference", TEXT, "of the code to the parent's, unified"),
        ("plan_difference", TEXT, "of the plan, without name and idea"),
        ("survived", TRUTH, "chosen as a seed of the next round"),
        ("banked", TRUTH, "chosen for the bank of good kernels"),
        ("prompt_sha256", TEXT, "of the prompt, which `messages` has"),
        ("prompt_tokens", WHOLE, "of the request"),
        ("completion_tokens", WHOLE, "of the reply"),
        ("near_duplicate_of", TEXT, "id of the first row that is much like it in code, in any split"),
        ("near_duplicate_similarity", REAL, "estimated Jaccard similarity of the two"),
    ]),
    "messages": ("Prompts and replies as chat turns, with what followed.", _EVERY_ROW + _OF_A_SEARCH + [
        ("request", TEXT, "id of the request"),
        ("kind", TEXT, "ideas or kernel"),
        ("attempt", WHOLE, "which reply to the request it is"),
        ("model", TEXT, "which model replied, as the search calls it"),
        ("replies", TEXT, "how the search got its replies"),
        ("idea_title", TEXT, "the idea that was asked for"),
        ("messages", TURNS, "the prompt as the user's turn, the reply as the assistant's"),
        ("prompt_sha256", TEXT, "of the prompt, as the recording has it"),
        ("parents", STRINGS, "kernels that the prompt showed"),
        ("prompt_tokens", WHOLE, "of the request"),
        ("completion_tokens", WHOLE, "of the reply"),
        ("tokens_counted", TRUTH, "by the model's own count; otherwise four bytes a token"),
        ("truncated", TRUTH, "the model stopped at a limit of length"),
        ("failure", TEXT, "why there is no text"),
        ("unusable", TEXT, "why the model was asked again"),
        ("candidates", STRINGS, "ids of the candidates that came of it"),
        ("status", TEXT, "verdict of the best of them"),
        ("outcome", TEXT, "its outcome in a line, as later prompts show it"),
        ("badges", STRINGS, "its badges"),
        ("median_ns", WHOLE, "its time"),
        ("percent_of_reference", REAL, "reference's time ÷ its own, in percent"),
        ("survived", TRUTH, "chosen as a seed of the next round"),
    ]),
    "preferences": ("Pairs of replies, the better one by the judge first.", _EVERY_ROW + _OF_A_SEARCH + [
        ("same", TEXT, "idea: the prompts differ in the branch's number alone; parents: in the idea as well"),
        ("prompt", TURNS, "that of the better one"),
        ("chosen", TURNS, "the better reply"),
        ("rejected", TURNS, "the other one"),
        ("chosen_id", TEXT, "row of candidates"),
        ("rejected_id", TEXT, "row of candidates"),
        ("chosen_status", TEXT, "verdict: always passed"),
        ("rejected_status", TEXT, "verdict"),
        ("rejected_message", TEXT, "why it did not pass"),
        ("device", TEXT, "where both were judged"),
        ("by", TEXT, "verdict or time"),
        ("chosen_ns", WHOLE, "median time"),
        ("rejected_ns", WHOLE, "median time"),
        ("speedup", REAL, "of the chosen over the rejected, each as a share of the reference in its own run"),
        ("speedup_low", REAL, "the least that both 95% intervals allow; above 1"),
        ("speedup_high", REAL, "the most"),
        ("beyond_noise", REAL, "speedup_low − 1"),
    ]),
    "repairs": ("A failure, its message, and what repaired it.", _EVERY_ROW + _OF_A_SEARCH + [
        ("kind", TEXT, "asked_again, same_idea or later_round"),
        ("prompt", TURNS, "that of the reply that repaired it"),
        ("failed_id", TEXT, "row of candidates"),
        ("failed_round", WHOLE, "its round"),
        ("failed_status", TEXT, "its verdict"),
        ("failed_message", TEXT, "what the judge, or the reader of the reply, said"),
        ("failed_compile_log", TEXT, "what the compiler said"),
        ("failed_reply", TEXT, "the reply that failed"),
        ("failed_code", TEXT, "its code"),
        ("repaired_id", TEXT, "row of candidates"),
        ("repaired_status", TEXT, "its verdict"),
        ("repaired_ns", WHOLE, "its time"),
        ("repaired_reply", TEXT, "the reply that repaired it"),
        ("repaired_code", TEXT, "its code"),
        ("similarity", REAL, "of the two codes, estimated Jaccard"),
    ]),
    "cheats": ("Kernels that try to pass without doing the work, or to be timed as faster than they are.",
               _EVERY_ROW + [
        ("cheat", TEXT, "what it tries"),
        ("status", TEXT, "what must become of it"),
        ("other_statuses", STRINGS, "what may become of it as well"),
        ("without_badges", STRINGS, "badges that it must not get"),
        ("caught_by", TEXT, "what stops it, or why it gains nothing"),
        ("seen_at", TEXT, "where it was seen; empty if it is our own"),
        ("code", TEXT, "its first module, where that is text"),
        ("modules", MODULES, "every module: text, or base64 of what is no text"),
        ("plan", TEXT, "the launch plan; some are no JSON"),
    ]),
    "mutants": ("Kernels that are wrong in one place, and honest ones that must pass.", _EVERY_ROW + [
        ("kind", TEXT, "mutant or honest"),
        ("what", TEXT, "what is wrong; of an honest kernel, how it works"),
        ("base", TEXT, "folder of the honest kernel that was changed"),
        ("changes", CHANGES, "texts in its code that were replaced"),
        ("plan_patch", TEXT, "change of its plan, a JSON merge patch"),
        ("code", TEXT, "CUDA C++"),
        ("code_bytes", WHOLE, "its length"),
        ("plan", TEXT, "the launch plan"),
        ("sha256", TEXT, "of everything that decides what runs"),
        ("expected", STRINGS, "one of these must be its verdict"),
        ("required_badges", STRINGS, "badges that an honest kernel must get"),
        ("refused_badges", STRINGS, "badges that a mutant must not get"),
        ("outcomes", OUTCOMES, "what became of it, where it was judged as it is now"),
    ]),
    "profiles": ("What a profiler counted of candidates.", _EVERY_ROW + [
        ("search", TEXT, "name of the search"),
        ("candidate", TEXT, "id in the search"),
        ("candidate_name", TEXT, "its name in candidates"),
        ("kernel", TEXT, "which of its kernels"),
        ("device", TEXT, "where"),
        ("tool", TEXT, "with what"),
        ("notes", STRINGS, "how"),
        ("metrics", METRICS, "name with its unit, and value"),
    ]),
}

SPLITS = ("train", "validation", "test")


def schema(config):
    return pa.schema([(name, kind) for name, kind, _ in CONFIGS[config][1]])
