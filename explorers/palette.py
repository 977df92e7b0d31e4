"""The explorers' colours: told apart by colour-blind readers, and legible on a white and on a dark page."""

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#c17ead", "#8d5dfb", "#9e502e")
GOOD, BAD = "#009e73", "#d55e00"
