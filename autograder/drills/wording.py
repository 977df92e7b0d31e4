"""What the drills say, in both languages."""

from ..exercise import Text

WORDS = {
    "commands": Text(
        en="Answer at the prompt; an empty line ends a text. At any prompt: :hint gives a hint, :show tells the solution and how its "
        "formulas are derived, :skip goes to another question, :quit leaves; what you answered is kept.",
        zh="在提示符后作答；文字答案以空行结束。任何时候都可输入：:hint 看提示，:show 看解答和用到的公式，"
        ":skip 换一题，:quit 退出；已答的都会保存。",
    ),
    "due": Text(en="{due} due, {new} never asked", zh="到期 {due} 题，未做过 {new} 题"),
    "right": Text(en="right", zh="正确"),
    "partly": Text(en="partly right", zh="部分正确"),
    "wrong": Text(en="not right", zh="不对"),
    "points": Text(en="{points} of {most} points", zh="{points} / {most} 分"),
    "again": Text(en="comes back in {wait}", zh="{wait}后再问"),
    "self": Text(
        en="{line}: how many of {most} points do you give yourself? It asks for: {criterion}",
        zh="{line}：满分 {most} 分，给自己几分？要求：{criterion}",
    ),
    "proposal": Text(en="Enter takes the proposal, {points}", zh="回车采用建议分 {points}"),
    "no_number": Text(en="a number from 0 to {most} is wanted, not {given}", zh="请输入 0 到 {most} 之间的数，而不是 {given}"),
    "no_command": Text(en="no command {given}; there is {commands}", zh="没有命令 {given}；可用 {commands}"),
    "more": Text(en="And what about this: {line}?", zh="那么这一点呢：{line}？"),
    "left": Text(en="─── question {number} of {count}, {left} left", zh="─── 第 {number}/{count} 题，还剩 {left}"),
    "card": Text(en="─── card {number} of {count}", zh="─── 第 {number}/{count} 张"),
    "only": Text(en="Only the number below is asked for, and roughly.", zh="只问下面这一个数，粗略估算即可。"),
    "go_on": Text(en="Enter goes on; :show tells the solution first", zh="回车继续；:show 先看解答"),
    "no_hint": Text(en="no more hints; :show tells the solution", zh="没有更多提示；:show 可看解答"),
    "answered": Text(en="answers: {answers}, on different days: {days}", zh="作答 {answers} 次，共 {days} 天"),
    "asked": Text(en="asked", zh="做过"),
    "known": Text(en="known", zh="掌握"),
    "due_now": Text(en="due", zh="到期"),
    "share": Text(en="points", zh="得分率"),
    "met": Text(en="misconception met {times}x: {card}: {hint}", zh="误解出现 {times} 次：{card}：{hint}"),
    "paper_taken": Text(en="mock paper of {taken}, {minutes:g} minutes: ", zh="模拟卷 {taken}，{minutes:g} 分钟："),
    "interview_taken": Text(en="mock interview of {taken}, {minutes:g} minutes: ", zh="模拟面试 {taken}，{minutes:g} 分钟："),
    "result": Text(en="{points:g} of {most:g} points", zh="{points:g} / {most:g} 分"),
    "unfinished": Text(en="not finished", zh="未完成"),
    "no_hint_here": Text(en="no more hints", zh="没有更多提示"),
    "nothing": Text(en="No exercise has all of this; choose otherwise.", zh="没有同时符合这些条件的题；请改选。"),
    "elsewhere": Text(
        en="Mock papers, mock interviews and Anki are in the terminal: <code>psi drill paper</code>, <code>psi drill interview</code>, "
        "<code>psi drill anki FILE</code>.",
        zh="模拟卷、模拟面试和 Anki 导出在终端里：<code>psi drill paper</code>、<code>psi drill interview</code>、"
        "<code>psi drill anki FILE</code>。",
    ),
    "yours": Text(en="You wrote: {text}", zh="你写的是：{text}"),
    "model": Text(en="The solution: {text}", zh="解答：{text}"),
    "gone": Text(en="left out, since the exercise is gone or has changed since: {names}", zh="下列题目已被删除或改动，因此略去：{names}"),
    "over": Text(en="time is up; what was not asked counts as not answered", zh="时间到；未作答的题按空白计"),
    "late": Text(
        en="after {seconds:.0f} s; an estimate has {limit} s, so it counts half", zh="用时 {seconds:.0f} 秒，超过 {limit} 秒，只计一半"
    ),
    "sheet": Text(en="Score sheet", zh="评分表"),
    "paper": Text(
        en="Mock paper: {count} questions, {most} points, {minutes} minutes; marked at its end. "
        ":skip leaves a question out, :quit stops the clock.",
        zh="模拟卷：{count} 题，{most} 分，{minutes} 分钟；最后统一评分。:skip 不答此题，:quit 停表退出。",
    ),
    "interview": Text(
        en="Mock interview: {count} questions, {minutes} minutes. :skip leaves a question out, :quit stops the clock.",
        zh="模拟面试：{count} 题，{minutes} 分钟。:skip 不答此题，:quit 停表退出。",
    ),
    "overtaken": Text(
        en="Another window has gone on with this since. What it kept counts, your last answer here was not kept, and you go on from there.",
        zh="另一个窗口已继续作答。以它保存的为准，你在这里的最后一个答案没有保存；从那里接着做。",
    ),
    "resumed": Text(en="going on where you stopped", zh="从上次停下的地方继续"),
    "kept": Text(en="kept; `psi drill {kind}` goes on with it", zh="已保存；`psi drill {kind}` 可继续"),
    "done": Text(en="{count} answered, {share:.0%} of the points", zh="答了 {count} 题，得分率 {share:.0%}"),
    "none": Text(en="nothing answered", zh="没有作答"),
    "machine": Text(en="proposal", zh="建议"),
    "check": Text(en="Check", zh="检查"),
    "next": Text(en="Next", zh="下一题"),
    "hint": Text(en="Hint", zh="提示"),
    "show": Text(en="Show the derivation", zh="看解答"),
    "keep": Text(en="Keep my marks", zh="保存我的评分"),
    "chapter": Text(en="Chapter", zh="章"),
    "kind": Text(en="Kind", zh="题型"),
    "difficulty": Text(en="Difficulty", zh="难度"),
    "mode": Text(en="Mode", zh="方式"),
    "true_false": Text(en="true or false, with a reason", zh="判断题（附理由）"),
    "single_choice": Text(en="one choice", zh="单选题"),
    "multi_choice": Text(en="several choices", zh="多选题"),
    "calculation": Text(en="calculation", zh="计算题"),
    "derivation": Text(en="derivation", zh="推导题"),
    "design": Text(en="design", zh="设计题"),
    "short_answer": Text(en="short answer", zh="简答题"),
    "all": Text(en="all", zh="全部"),
    "practice": Text(en="practice", zh="练习"),
    "rapid": Text(en="60-second estimates", zh="60 秒估算"),
    "estimate": Text(en="within {within:.0%} counts, you have {limit} s", zh="误差 {within:.0%} 以内算对，限时 {limit} 秒"),
}


def say(key, languages, **values):
    """A sentence of the table in these languages; values may be a Text each."""
    return WORDS[key].format(**values).say(languages)


# the longest span that is told in a unit, in seconds, the unit's own seconds, and its names
SPANS = ((90, 1, "s", "秒"), (90 * 60, 60, "min", "分钟"), (36 * 3600, 3600, "h", "小时"), (float("inf"), 86400, "days", "天"))


def span(seconds):
    """A length of time as people say it, as a Text."""
    seconds = max(0, seconds)
    _, unit, en, zh = next(row for row in SPANS if seconds <= row[0])
    return Text(en=f"{seconds / unit:.0f} {en}", zh=f"{seconds / unit:.0f} {zh}")
