"""Client of Rekernel's judge: verdicts on GPU kernels, and rewards made of them.

The package imports nothing but the standard library. Adapters (``rekernel.adapters``) import the package that they
adapt, and are imported by whoever wants them.

>>> import rekernel
>>> answer = rekernel.evaluate(source, plan=plan, problem="softmax")        # starts a service where none runs
>>> rekernel.Reward()(answer)
"""

from rekernel._local import evaluate, local_client, start_service
from rekernel._protocol import Answer, MachineError, Refused, RekernelError, Unreachable
from rekernel.aio import AsyncClient
from rekernel.client import Client
from rekernel.reward import Reward, group_advantages, reward_function

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "MachineError",
    "Refused",
    "RekernelError",
    "Reward",
    "Unreachable",
    "evaluate",
    "group_advantages",
    "local_client",
    "reward_function",
    "start_service",
]
