"""A data-parallel step played through bucket by bucket. No formula here."""


def ddp_step(forward, backward, comm, buckets, *, wait_for_buckets=True):
    """When the step ends: backward fills buckets one after the other, and one network sends them in that order.

    A bucket is sent when it is full and the network free; without `wait_for_buckets` only the last one must be full.
    """
    computed = sent = forward
    for number in range(1, buckets + 1):
        computed += backward / buckets
        ready = computed if wait_for_buckets or number == buckets else forward
        sent = max(ready, sent) + comm / buckets
    return max(computed, sent)


def sequences_of_a_step(micro_batch, accumulation_steps, ranks):
    """Numbers of the sequences that a step uses, by walking through it."""
    fresh = iter(range(10**6))
    return [next(fresh) for _ in range(accumulation_steps) for _ in range(ranks) for _ in range(micro_batch)]


def replicas(gpus, tensor_parallel, stages, context_parallel):
    """The groups of GPUs that each hold one whole model: consecutive GPUs fill one replica after the other."""
    groups, size = [], tensor_parallel * stages * context_parallel
    for gpu in range(gpus):
        if gpu % size == 0:
            groups.append([])
        groups[-1].append(gpu)
    return groups
