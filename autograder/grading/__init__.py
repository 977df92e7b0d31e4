"""A whole class marked at once: `psi grade ASSIGNMENT`, its report and its export. Nothing here marks; `autograder.marking` does."""
