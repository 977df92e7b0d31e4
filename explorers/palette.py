"""The explorers' colours: told apart by colour-blind readers, and legible on a white and on a dark page."""

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#b565a7", "#8a8a00", "#3f9bd1")
GOOD, BAD = "#009e73", "#d55e00"
