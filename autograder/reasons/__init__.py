"""Free-text reasons marked by what they claim: transparent, offline, in English, Chinese or both at once.

A rubric (exercises/reasons/<exercise>.yaml) says per line which claims earn it and which contradict it. A claim is a few
concepts that must stand together in one clause or in neighbouring ones: `card & keep & complete & states`. Concepts are
sets of words in both languages (exercises/reasons/vocabulary.yaml, and the exercise's own words); predicates among them
carry a polarity: `!decrease` is met by "does not shrink" and 没有减少.

An answer is read in steps, each a module:

- `text`: one spelling for each thing (width, case, `16 Ψ`, markup, marks of direction), and where each clause starts;
- `spelling`: short forms, misspellings, characters that sound alike;
- `vocabulary`: which concepts are mentioned where, by `terms` that are looked for all at once;
- `polarity`: which of them a negation reaches, and what is only supposed or reported;
- `claims`: which claims are made, of which the opposite is said, and which are nearly made;
- `talk`: lists of keywords, the statement said again, talk without a subject;
- `mark`: the kind of evidence this makes (full, part, contradicted, …). The settings say what each kind is worth and how
  reliable it has been; below a limit a person must look, and the points are a proposal.

`bench` measures all this on marked answers, with settings fitted on nine questions and tried on the tenth.
"""

from autograder.reasons.mark import Match, ReasonMark, mark_reason
from autograder.reasons.rubric import Rubric, RubricError, load_rubric

__all__ = ["Match", "ReasonMark", "Rubric", "RubricError", "load_rubric", "mark_reason"]
