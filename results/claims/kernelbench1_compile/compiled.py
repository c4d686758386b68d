"""KernelBench's model as torch.compile runs it."""

from claimed_program import Model, get_init_inputs, get_inputs  # noqa: F401


class ModelNew(Model):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.compile()
