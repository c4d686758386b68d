"""The rows of every chart, from the report's data. Nothing is measured or derived here but places on
a page: figures come from the records, or were derived by the program that read them."""

from .claims import claim_bars, claim_problem, claim_reference, claimed_words, measured_words
from .datasets import counts_text, length_text, rows_by_problem, time_text
from .devices import (bound_rows, ceiling_bars, divisors, fast_p_rows, matrix_rows, noise_rows,
                      reference_bars)
from .kernels import error_rows, kernel_bars, plan_rows, plan_steps, roofline_rows, sample_rows
from .marks import reference_for, verdict_class
from .searches import at_k_rows, run_rows, times_rows, token_rows, tree_rows
from .studies import beside_best, distribution_rows, factor, so_far_rows, study_rows
