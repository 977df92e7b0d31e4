"""Terms are found all at once, by needles: just where one pattern of them all would find them, piece by piece."""

import pickle
import re

import pytest

from autograder.reasons import RubricError, bench, load_rubric, mark_reason
from autograder.reasons.language import language, negating, words
from autograder.reasons.rubric import RUBRIC_FOLDER, VOCABULARY_FILE
from autograder.reasons.terms import Terms, VocabularyError, alternatives, listed, needles, pattern
from autograder.reasons.text import normalise

RUBRICS = [load_rubric(path.stem) for path in sorted(RUBRIC_FOLDER.glob("*.yaml")) if path.name != VOCABULARY_FILE]
ANSWERS = [normalise(answer.text).clean for answer in bench.load_answers(bench.DEVELOPING_FILE)]
LISTS = [*negating().values(), *(words(name) for name, said in language().items() if isinstance(said, str) and ";" in said)]


def concepts():
    """The Terms of each concept that some rubric names."""
    return {Terms(concept.terms) for rubric in RUBRICS for concept in rubric.vocabulary.concepts.values()}


def found(terms, text):
    return [match.span() for match in terms.finditer(text)]


def found_by_one_pattern(terms, text):
    whole = "|".join(f"(?:{pattern(term).pattern})" for term in terms.terms)
    return [match.span() for match in re.finditer(whole, text)]


def test_a_needle_stands_in_all_that_a_term_matches():
    text = "\n".join(ANSWERS)
    terms = {term for group in [*concepts(), *LISTS, *(rubric.field_words for rubric in RUBRICS)] for term in group.terms}
    met = {term: {match[0] for match in pattern(term).finditer(text)} for term in terms}
    assert sum(map(bool, met.values())) > len(terms) / 2
    strays = [(term, said) for term, every in met.items() for said in every if not any(needle in said for needle in needles(term))]
    assert strays == []


def test_terms_are_found_where_one_pattern_of_them_all_finds_them():
    text = "\n".join(ANSWERS[::12])
    groups = [*concepts(), *LISTS, RUBRICS[0].field_words]
    assert [terms for terms in groups if found(terms, text) != found_by_one_pattern(terms, text)] == []


def test_mentions_are_what_the_concepts_terms_find():
    for rubric, answer in zip(RUBRICS, ANSWERS[::50], strict=False):
        mentioned = {(mention.concept, mention.start, mention.end) for mention in rubric.vocabulary.mentions(answer)}
        every = {(c.name, *span) for c in rubric.vocabulary.concepts.values() for span in found_by_one_pattern(Terms(c.terms), answer)}
        things = {name for name, concept in rubric.vocabulary.concepts.items() if not concept.is_predicate}
        assert mentioned <= every and {said for said in every if said[0] in things} <= mentioned


@pytest.mark.parametrize(
    ("term", "needle"),
    [
        ("all reduce", {"reduce"}),
        ("updat*", {"updat"}),
        ("gradients?", {"gradient"}),
        ("(the )?card", {"card"}),
        ("(copy|twin) .. (fp32|32 bit)", {"copy", "twin"}),
        ("(一(份|套)|整) ?权重", {"权重"}),
        ("tens|dozens", {"tens", "dozens"}),
        (r"2\(k-1\)", {"k-1"}),
        ("[mv](?![a-z])", {""}),
        ("没.{0,2}关系", {"关系"}),
    ],
)
def test_the_needles_of_a_term(term, needle):
    assert needles(term) == needle


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ("all reduce; reduce*", [(0, 10), (11, 18), (37, 47)]),
        ("reduces?; all", [(0, 3), (4, 10), (37, 40), (41, 47)]),
        ("duce", []),
        ("", []),
    ],
)
def test_the_longest_term_is_found_and_none_within_a_word(said, places):
    assert found(alternatives(listed(said)), "all-reduce reduced 0.reduce preduce, all reduce") == places


def test_a_search_ends_where_it_is_told_to():
    terms = alternatives(["zero", "zero one"])
    assert terms.search("zero one", 0, 5).span() == (0, 4)
    assert terms.search("zero one", 1) is None
    assert terms.match("a zero one", 2).span() == (2, 10) and terms.match("a zero one", 0) is None


def test_a_term_that_makes_no_pattern_is_named_when_it_is_read(tmp_path):
    from tests.reasons.conftest import RUBRIC, WORDS

    with pytest.raises(VocabularyError, match="does not make a pattern"):
        listed("card; gpu(s")
    (tmp_path / "vocabulary.yaml").write_text(WORDS.replace("gpu;", "gpu(s;"), encoding="utf-8")
    (tmp_path / "BAD.yaml").write_text(RUBRIC, encoding="utf-8")
    with pytest.raises(RubricError, match=r"gpu\(s"):
        load_rubric("BAD", tmp_path)


@pytest.mark.parametrize("rubric", RUBRICS, ids=lambda rubric: rubric.exercise)
def test_a_rubric_is_kept_with_all_but_its_patterns(rubric):
    answers = [answer for line in rubric.lines for answer in line.model_answers.values()]
    marks = [mark_reason(answer, rubric) for answer in answers]
    kept = pickle.dumps(rubric)
    assert b"ahocorasick" in kept and b"_compile" not in kept
    again = pickle.loads(kept)
    assert again == rubric and [mark_reason(answer, again) for answer in answers] == marks


MISTAKEN = ["(big |small )*(sum|total)", "(big |small )+sum", r"\w+ sum", r"param\w* sum"]
REPEATED = ["(big |small ){0,3}(sum|total)", "(error|noise)*", "numeric* error", r"m \+ v", r"(s|\(a\)) \+ b"]


@pytest.mark.parametrize("term", MISTAKEN)
def test_a_term_that_would_repeat_as_in_a_regular_expression_is_refused(term):
    with pytest.raises(VocabularyError, match=r"\{0,3\}"):
        listed(f"card; {term}")


@pytest.mark.parametrize("term", REPEATED)
def test_a_term_that_repeats_or_ends_a_stem_as_tables_say_it_is_read(term):
    assert listed(term) == [term]
