"""What the data card and Croissant both say."""

NAME = "rekernel"
TITLE = "Rekernel: recorded searches for GPU kernels"

DESCRIPTION = (
    "Searches of language models for CUDA kernels, recorded whole: every prompt and reply, every failure, verdicts of "
    "a judge that the judged code cannot reach, times with all samples beside those of the library, parents and "
    "differences. With them the judge's gallery of cheats, and mutants and honest kernels that measure how often it "
    "errs. Each row can be judged again from its own bytes.")

COLLECTION = (
    "A search asks language models for ideas and kernels, round by round; each reply's kernel is compiled, judged and "
    "timed on a GPU, and the fastest correct ones seed the next round. The file that records it holds every reply "
    "whole, and a hash of every prompt. Prompts are made again by replaying the search exactly: each has to give the "
    "recorded hash, and the replay the recorded file byte for byte, or no row is written.")

ANNOTATION = (
    "Verdicts, errors, badges and times are the judge's; no person labels anything. A verdict compares whole outputs "
    "with a float64 truth on inputs that nobody could foresee, in timed runs too, in processes that the candidate "
    "cannot reach.")

USE_CASES = (
    "Training and evaluating models that write, mend or rank GPU kernels; training reward models (preferences) and "
    "detectors of kernels that cheat (cheats) or are slightly wrong (mutants); studying how searches go. Not for "
    "comparing devices or libraries, nor models with each other: searches differ in what their models knew.")

BIASES = [
    "Few problems: the searches are of those that the make-up below counts, most of them FP32 and FP16 operations "
    "of neural networks at one size each.",
    "One family of devices: kernels were written for, and times taken on, the devices that the make-up counts.",
    "A search keeps what is fast, so that later rounds are variations of few kernels: near duplicates are marked.",
    "Some searches' model had tried kernels for the same problem before, as `replies` and the notes below say; most "
    "of their candidates pass, and failures are rarer than a model without that would make.",
]

LIMITS = [
    "Rows from before the judge kept samples have none: `samples_ns` is empty there, and `judge` too.",
    "A verdict of `passed` is for the problem's own sizes, not for others.",
    "Times of different devices, or of different toolchains, are not comparable; shares of the reference's time in the "
    "same run are nearer to it.",
    "The prompts tell of times and verdicts on the search's device; a model that learns from them learns that device.",
    "`same_idea` repairs knew nothing of the failure; only `asked_again` and `later_round` are answers to one.",
]

SOCIAL_IMPACT = (
    "Faster kernels take less energy for the same work. Models trained on the cheats might learn to cheat: the config "
    "is there for detectors, and is kept apart from the others for that reason.")

PERSONAL = (
    "None is known of. Replies are models' words about code. A row whose text is not UTF-8, or holds what looks like a "
    "key or a token, stops the export.")

MAINTENANCE = (
    "The data set is made anew from the project's records by one command; the same records give the same bytes. Ids "
    "stay as long as what a row tells stays. Errors are repaired in the records, not here.")

LOADING = '''from datasets import load_dataset

candidates = load_dataset("FOLDER", "candidates", split="train")'''
