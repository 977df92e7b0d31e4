"""Handing out brings what is missing and never touches a learner's answers."""

from tools.hand_out import hand_out


def release(root, name, text):
    path = root / "exercises/course/release" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_new_assignment_is_handed_out(tmp_path):
    release(tmp_path, "ps01/ps01.ipynb", "question")
    assert hand_out(tmp_path) == [tmp_path / "assignments/ps01/ps01.ipynb"]
    assert (tmp_path / "assignments/ps01/ps01.ipynb").read_text() == "question"


def test_answers_are_kept(tmp_path):
    release(tmp_path, "ps01/ps01.ipynb", "question")
    hand_out(tmp_path)
    (tmp_path / "assignments/ps01/ps01.ipynb").write_text("answer")
    release(tmp_path, "ps01/ps01.ipynb", "better question")
    release(tmp_path, "ps02/ps02.ipynb", "next question")
    assert [path.name for path in hand_out(tmp_path)] == ["ps02.ipynb"]
    assert (tmp_path / "assignments/ps01/ps01.ipynb").read_text() == "answer"


def test_nothing_released_is_nothing_handed_out(tmp_path):
    assert hand_out(tmp_path) == []
