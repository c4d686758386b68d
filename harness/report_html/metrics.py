"""The figures that the pages show: what each means, how it is computed, and where it comes from."""

from markupsafe import Markup


def _math(body):
    return Markup(f'<math display="block">{body}</math>')


def _fraction(above, below):
    return f"<mfrac><mrow>{above}</mrow><mrow>{below}</mrow></mfrac>"


def _binomial(above, below):
    return (f'<mrow><mo>(</mo><mfrac linethickness="0"><mrow>{above}</mrow><mrow>{below}</mrow>'
            "</mfrac><mo>)</mo></mrow>")


def _median(of):
    return f"<mi>median</mi><mo>(</mo><msub><mi>t</mi><mtext>{of}</mtext></msub><mo>)</mo>"


_N, _C, _K, _J = "<mi>n</mi>", "<mi>c</mi>", "<mi>k</mi>", "<mi>j</mi>"

METRICS = {
    "reference": {
        "name": "% of reference",
        "meaning": "How fast the kernel is beside the library: the library's time divided by the "
                   "kernel's. 100% is equally fast, 200% twice as fast. Both are medians of times "
                   "taken in turns in one run, with cold caches and new inputs for each. The "
                   "reference is named with its math mode; the headline is FP32 where the problem "
                   "is. The interval covers the ratio in at least 95% of all measurements.",
        "formula": _math("<mn>100</mn><mo>·</mo>" + _fraction(_median("reference"),
                                                              _median("kernel"))),
        "source": "Rekernel, harness/TIMING.md. The interval: order statistics of both medians at "
                  "97.5% each (Thompson 1936; David and Nagaraja, Order Statistics, 2003, 7.1).",
    },
    "published": {
        "name": "published %",
        "meaning": "What was published: the time of PyTorch divided by the kernel's, on another "
                   "GPU. It stands beside the measured figures and is never mixed with them.",
        "formula": _math("<mn>100</mn><mo>·</mo>" + _fraction(
            "<msub><mi>t</mi><mtext>PyTorch</mtext></msub>",
            "<msub><mi>t</mi><mtext>kernel</mtext></msub>")),
        "source": None,  # that of the record
    },
    "ceiling": {
        "name": "% of ceiling",
        "meaning": "How close the kernel is to what libraries reach on the device: the time of the "
                   "definition's bytes and operations at the rates of a large copy and of the "
                   "library's FP16 product, divided by the kernel's. Both rates were measured in "
                   "the same run. 103% is possible: the kernel is faster than those rates.",
        "formula": _math("<mn>100</mn><mo>·</mo>" + _fraction(
            "<mi>max</mi><mo>(</mo>" + _fraction("<mtext>bytes</mtext>",
                                                 "<mtext>copy bandwidth</mtext>") +
            "<mo>,</mo>" + _fraction("<mtext>operations</mtext><mo>·</mo><mtext>products</mtext>",
                                     "<mtext>FP16 matrix rate</mtext>") + "<mo>)</mo>",
            _median("kernel"))),
        "source": "Rekernel, harness/TIMING.md, after the roofline model (Williams, Waterman and "
                  "Patterson, Communications of the ACM 52(4), 2009). Bytes: each input read once, "
                  "the output written once. Products: FP16 products that the tolerance needs for "
                  "one of the definition.",
    },
    "speed_of_light": {
        "name": "% of speed of light",
        "meaning": "How close the kernel is to what the chip can do at all: the least time that its "
                   "memory and its matrix units need at their highest clocks, divided by the "
                   "kernel's. A faster time is rejected.",
        "formula": _math("<mn>100</mn><mo>·</mo>" + _fraction(
            "<mi>max</mi><mo>(</mo>" + _fraction(
                "<mtext>bytes</mtext><mo>−</mo><mtext>L2 cache</mtext>",
                "<mn>2</mn><mo>·</mo><mtext>memory clock</mtext><mo>·</mo><mtext>bus width</mtext>")
            + "<mo>,</mo>" + _fraction(
                "<mtext>fewest operations</mtext>",
                "<mtext>per clock</mtext><mo>·</mo><mtext>multiprocessors</mtext><mo>·</mo>"
                "<mtext>SM clock</mtext>") + "<mo>)</mo>", _median("kernel"))),
        "source": "Rekernel, harness/TIMING.md. Clocks, bus and cache as the driver reports them; "
                  "FP16 operations per clock by the vendor's sheets. The fewest operations are "
                  "those of the best method known (Strassen, Winograd), not the definition's.",
    },
    "pass_at_k": {
        "name": "pass@k",
        "meaning": "The chance that of k candidates, drawn from the n of a search, at least one "
                   "is correct; c of them are.",
        "formula": _math("<mn>1</mn><mo>−</mo>" + _fraction(
            _binomial(_N + "<mo>−</mo>" + _C, _K), _binomial(_N, _K))),
        "source": "Chen et al., Evaluating Large Language Models Trained on Code, 2021 "
                  "(arXiv:2107.03374).",
    },
    "speedup_at_k": {
        "name": "speedup@k",
        "meaning": "The best speed-up over the reference that k candidates, drawn from the n of a "
                   "search, can be expected to contain. One that failed counts as 0; the speed-ups s "
                   "are in ascending order.",
        "formula": _math(
            f"<munderover><mo>∑</mo><mrow>{_J}<mo>=</mo>{_K}</mrow>{_N}</munderover>" + _fraction(
                _binomial(_J + "<mo>−</mo><mn>1</mn>", _K + "<mo>−</mo><mn>1</mn>"),
                _binomial(_N, _K)) + "<mo>·</mo><msub><mi>s</mi><mi>j</mi></msub>"),
        "source": "Nichols et al., Can Large Language Models Write Parallel Code?, HPDC 2024 "
                  "(arXiv:2401.12554).",
    },
    "fast_p": {
        "name": "fast_p",
        "meaning": "The share of problems for which there is a kernel that is correct and more "
                   "than p times as fast as the reference. fast_0 is the share solved at all.",
        "formula": _math(
            _fraction("<mn>1</mn>", "<mi>N</mi>") +
            "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>N</mi>"
            "</munderover><mn mathvariant=\"normal\">1</mn><mo>[</mo>"
            "<msub><mtext>correct</mtext><mi>i</mi></msub><mo>∧</mo>"
            "<msub><mtext>speed-up</mtext><mi>i</mi></msub><mo>&gt;</mo><mi>p</mi><mo>]</mo>"),
        "source": "Ouyang et al., KernelBench: Can LLMs Write Efficient GPU Kernels?, 2025 "
                  "(arXiv:2502.10517).",
    },
    "bounds": {
        "name": "share of the bounds",
        "meaning": "The largest of three errors against the float64 truth, each divided by its "
                   "bound: of the single element, of the largest error and of the root mean square "
                   "over that of the truth. Above 1, the output is rejected.",
        "formula": _math(
            "<mi>max</mi><mo>(</mo>" + _fraction(
                "<mo>|</mo><mtext>error</mtext><mo>|</mo>",
                "<mi>a</mi><mo>+</mo><mi>r</mi><mo>·</mo><mo>|</mo><mtext>truth</mtext><mo>|</mo>")
            + "<mo>,</mo>" + _fraction(
                "<mi>max</mi><mo>|</mo><mtext>error</mtext><mo>|</mo>",
                "<mi>b</mi><mo>·</mo><mi>rms</mi><mo>(</mo><mtext>truth</mtext><mo>)</mo>")
            + "<mo>,</mo>" + _fraction(
                "<mo>‖</mo><mtext>error</mtext><mo>‖</mo>",
                "<mi>d</mi><mo>·</mo><mo>‖</mo><mtext>truth</mtext><mo>‖</mo>") + "<mo>)</mo>"),
        "source": "Rekernel, ops/TOLERANCES.md; a = r = 1e-2 is the published tolerance.",
    },
}
