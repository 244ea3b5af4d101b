"""Many workers on each partition, with the order of keys, retries and dead letters.

Owns: nothing; it names what users need. See docs/parallel.md.
"""

from kconsumer.parallel.consumer import ParallelConsumer
from kconsumer.parallel.dead_letters import DeadLetterTopic
from kconsumer.parallel.flow import TooManyRejectedError
from kconsumer.parallel.inline import run_records
from kconsumer.parallel.options import Summary
from kconsumer.parallel.outcomes import Failure, Reject, Retry, RetryLater

__all__ = ["DeadLetterTopic", "Failure", "ParallelConsumer", "Reject", "Retry", "RetryLater", "Summary",
           "TooManyRejectedError", "run_records"]
