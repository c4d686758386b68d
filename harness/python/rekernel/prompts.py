"""What a writer of kernels is told of a problem."""

from __future__ import annotations

from typing import Any, Mapping

_TEXT = """# {title}

Write a CUDA kernel that is right and as fast as you can make it. It is judged on a GPU, elsewhere.

A candidate is CUDA C++, device code alone, and a launch plan in JSON. The code may include `problem.h` (below),
`cuda_fp16.h`, `cuda_bf16.h`, `mma.h`, `cooperative_groups.h` and `cuda/…`. The plan is
`{{"launches": [{{"kernel": "NAME", "grid": [N], "block": [N], "args": ["x", "y"]}}]}}`: arguments are the tensors'
names, names of workspaces (`"workspace": {{"name": BYTES}}`), or typed scalars (`{{"i32": 7}}`); a kernel is declared
`extern "C"`. `"arch"` is the lowest target (`sm_80`, `sm_90a`, …).
{form}

## Definition

```
{definition}
```

## Tensors

{tensors}

Every element has to be within {absolute} + {relative}·|truth| of the float64 truth, and the errors as a whole within
the problem's bounds.

## problem.h

```cpp
{problem_h}
```
"""

IN_A_REPLY = "Answer with exactly one block marked `cuda` and one marked `json`, the plan."
IN_FILES = "Write them to `/answer/kernel.cu` and `/answer/kernel.json`."


def problem_text(problem: Mapping[str, Any], form: str = IN_A_REPLY) -> str:
    """A problem, as Client.problem gives it, in Markdown. ``form``: where the candidate goes."""
    rows = ["| name | role | type | shape |", "|---|---|---|---|"]
    for tensor in problem["tensors"]:
        shape = " × ".join(str(size) for size in tensor["shape"])
        rows.append(f"| `{tensor['name']}` | {tensor['role']} | {tensor['dtype']} | {shape} |")
    return _TEXT.format(
        title=problem["title"],
        form=form,
        definition="\n".join(problem["definition"]),
        tensors="\n".join(rows),
        absolute=problem["tolerance"]["absolute"],
        relative=problem["tolerance"]["relative"],
        problem_h=problem["problem_h"].rstrip(),
    )
