"""A ring all-reduce in a dozen lines. A learner's own, in a file with a function of this name, can take its place."""


def all_reduce(message, rank, num_ranks, exchange):
    """Add up everybody's `message`, a flat tensor, in place.

    exchange(tensor) sends a tensor to the next rank round the ring and returns what the rank before has sent, of the same shape.
    """
    blocks = message.chunk(num_ranks)
    for turn in range(num_ranks - 1):
        blocks[(rank - turn - 1) % num_ranks].add_(exchange(blocks[(rank - turn) % num_ranks]))
    for turn in range(num_ranks - 1):
        blocks[(rank - turn) % num_ranks].copy_(exchange(blocks[(rank - turn + 1) % num_ranks]))
