"""How much of anything is read from a learner before we say that it is too much."""

TEXT = 20_000  # characters of one answer
SURE_TEXT = 1_500  # characters of a reason that we trust ourselves to have understood whole
CELL = 100_000  # characters of an answer cell
AMOUNT = 300  # characters of an amount
SHORT = 200  # characters of an answer of which the finding is kept, in case another learner gives it
FINDINGS = 4_096  # that are kept of an exercise
FORMULA = 2_000  # characters of a formula
FORMULA_TOKENS = 300  # numbers, letters and signs of it
FORMULA_DEPTH = 40  # brackets within brackets
FORMULA_EXPONENT = 1_000
FORMULA_BITS = 4_000  # of a numerator or denominator on the way to its value
FORMULA_MAGNITUDE = 20_000  # of an irrational number on the way, in powers of two
SECONDS = 20  # that a notebook's code may run
MEMORY = 4 * 2**30  # bytes that it may map
OUTPUT = 1_000_000  # bytes of what it hands back
FILES = 128  # that it may have open
NOTEBOOK = 256 * 2**20  # bytes of a notebook file
IMPORTS = 2**20  # bytes of a notebook in which imports are looked for before it runs
BESIDE = 20 * 2**20  # bytes of all that is handed in beside it
BESIDE_FILES = 50
BESIDE_DEPTH = 20  # folders within folders
LARGE = 10 * 2**20  # bytes from which on we say that outputs were left out
SALVAGE = 20 * 2**20  # characters of a damaged notebook that are looked through for cells
SALVAGE_TRIES = 200  # places in it where reading is tried again
