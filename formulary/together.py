"""What inputs must obey together, where several formulas share it: (relation, words), for `valid`."""

import sympy as sp

from . import glossary as g
from .units import TOKEN

GROUPED_HEADS = (sp.Eq(sp.Mod(g.num_heads, g.num_kv_heads), 0), "query heads must share the key-value heads evenly")
ONE_OF_THE_STAGES = (g.stage_index <= g.num_stages, "the first stage is 1 and the last num_stages")
ONE_OF_THE_RANKS = (g.rank_index < g.world_size, "the first rank is 0 and the last world_size - 1")
TOKENS_FOR_ALL = (g.context_parallel * TOKEN <= g.seq_length, "every context-parallel rank needs a token")
