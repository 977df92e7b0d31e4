"""Drills: exercises asked again with fresh numbers, when forgetting them is due; `psi drill` and `autograder.drill()` share it all."""
