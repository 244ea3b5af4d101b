"""Many workers on each partition, with the order of keys, retries and dead letters.

Owns: nothing; it names what users need. See docs/parallel.md.
"""

from kconsumer.parallel.consumer import ParallelConsumer
from kconsumer.parallel.dead_letters import DeadLetterTopic
from kconsumer.parallel.flow import TooManyRejectedError
from kconsumer.parallel.inline import run_records
from kconsumer.parallel.options import Summary
from kconsumer.parallel.outcomes import Failure, Reject, Retry, RetryLater
from kconsumer.parallel.processes import RemoteError, WorkerDiedError

__all__ = ["DeadLetterTopic", "Failure", "ParallelConsumer", "Reject", "RemoteError", "Retry", "RetryLater", "Summary",
           "TooManyRejectedError", "WorkerDiedError", "run_records"]
