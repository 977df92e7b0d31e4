// Timelines: blocks laid out by rules (plan.js), what rows hold meanwhile, and the formulas held against what is counted.

const MEASURES = {
  idle: (plan) => {
    const rows = plan.lines.map((_, row) => row);
    const step = Math.max(...rows.map((row) => spanOf(plan, row)));
    return settled(1 - rows.reduce((sum, row) => sum + busyOf(plan, row), 0) / rows.length / step, 1);
  },
  exposed: (plan) => settled(endOf(plan) - busyOf(plan, 0), endOf(plan)),
  step: (plan) => endOf(plan),
  peak: (plan, levels) => mostOf(levels),
};
const SAME = 1e-9; // of the whole: a counted figure this near to the formula's is the same, and one this near to 0 is 0
const WIDE_ENOUGH = 15; // pixels of a block that a number is written into
const AT_MOST = 600; // numbers in one picture

function scene(view, state, evaluate) {
  const known = { ...state };
  for (const name of view.needed) known[name] = evaluate(name, {});
  const rows = EXPRESSIONS.rows(known);
  const plan = layOut(view, known, rows);
  const base = EXPRESSIONS.base(known);
  const held = view.levelUnit === null ? [] : view.together ? [plan.blocks] : plan.lines;
  const levels = held.map((blocks) => levelOf(blocks).map(([time, amount]) => [time, base + amount]));
  const applies = ({ when }) => Object.entries(when).every(([name, value]) => state[name] === value);
  return {
    blocks: plan.blocks,
    rows,
    end: endOf(plan),
    fault: plan.fault,
    levels,
    counted: plan.fault ? NaN : MEASURES[view.measure](plan, levels),
    beside: view.beside.filter(applies).map(({ label, name }) => [label, evaluate(name, {})]),
    now: view.now ? state[view.now] / 100 : 1,
  };
}

function settled(value, whole) {
  return Math.abs(value) <= SAME * whole ? 0 : value;
}

function mostOf(levels) {
  return levels.flat().reduce((most, [, amount]) => Math.max(most, amount), 0);
}

function rowName(view, row) {
  return view.rowNames[row] ?? view.rowLabel.replace("{}", row + 1);
}

function describe(view, { blocks, rows, end, fault, levels, counted, beside }) {
  const size = (value) => write(value, view.unit, 4, view.scale);
  const time = (value) => write(value, view.timeUnit);
  const said = beside.map(([label, value]) => `; ${label}: ${size(value)}`).join("");
  const agree = beside.every(([, value]) => Math.abs(value - counted) <= SAME * Math.max(Math.abs(value), Math.abs(counted)));
  const ofKind = view.rules.map(({ kind }) => blocks.filter((block) => block.kind === kind));
  const times = inOneUnit([...ofKind.map((mine) => mine.reduce((sum, block) => sum + block.length, 0)), end], view.timeUnit);
  const kinds = view.rules.map(({ label }, i) => ({ colour: view.palette[i], cells: [label, String(ofKind[i].length), times[i]] }));
  const held = [...new Set(levels.length ? [0, levels.length - 1] : [])].map((row) => ({
    cells: [view.together ? view.levelWhat : `${view.levelWhat}, ${rowName(view, row)}`, "at most", write(mostOf([levels[row]]), view.levelUnit)],
  }));
  return {
    headline: size(counted),
    detail: fault || view.what,
    lamp: beside.length && !fault ? { good: agree, text: agree ? `${beside[0][0]} says the same` : beside.map(([label, value]) => `${label} says ${size(value)}`).join(", ") } : null,
    head: ["blocks", "number", held.length ? "time, or the most held" : "time"],
    rows: [...kinds.filter(({ cells }) => cells[1] !== "0"), ...held, { cells: ["from start to end", "", times.at(-1)] }],
    sentence: fault || `${rows === 1 ? "1 row" : `${rows} rows`}, ${time(end)} in all. ${size(counted)} ${view.what}${said}.`,
  };
}

function draw(sheet, view, seen) {
  const [width, height] = [sheet.root.viewBox.baseVal.width, sheet.root.viewBox.baseVal.height];
  const below = seen.levels.length > 0 && !view.together; // each row's level stands below its blocks
  const box = { left: 84, right: width - (seen.levels.length ? 74 : 14), top: seen.levels.length ? 18 : 6, bottom: height - 26 };
  const x = (time) => box.left + ((box.right - box.left) * time) / (seen.end || 1);
  const tall = view.together ? Math.min(52, (box.bottom - box.top) / (seen.rows + 2)) : (box.bottom - box.top) / seen.rows;
  const block = below ? Math.min(30, tall * 0.56) : Math.min(44, tall * 0.82);
  const now = seen.now * seen.end;
  const at = { box, x, tall, block, now, below };
  drawTimes(sheet, box, x, seen.end, view, width);
  drawBlocks(sheet, view, seen, at);
  for (let row = 0; row < seen.rows; row++) drawRow(sheet, view, row, at);
  seen.levels.forEach((level, row) => drawLevel(sheet, view, seen, level, row, at));
  if (seen.levels.length) sheet.draw("text", "held", { x: width - 8, y: box.top - 5, class: "psi-tick", "text-anchor": "end" }, `most ${view.levelWhat}`);
  if (seen.now < 1) sheet.draw("line", "now", { x1: x(now), x2: x(now), y1: box.top, y2: box.bottom, class: "psi-axis" });
}

function drawTimes(sheet, box, x, end, view, width) {
  const { step } = roundAxis(end || 1, Math.max(3, width / 110));
  const ticks = ticksUpTo(end, step);
  ticks.forEach((time, i) => sheet.draw("line", `time${i}`, { x1: x(time), x2: x(time), y1: box.top, y2: box.bottom + 4, class: "psi-grid" }));
  drawLabels(sheet, "time tick", ticks.map((time) => [x(time), write(time, view.timeUnit)]), box.bottom + 18, 0, width);
}

// All blocks of one kind and tone are one path: a picture of ten thousand blocks has some dozen elements.
function drawBlocks(sheet, view, seen, { box, x, tall, block, now, below }) {
  const paths = {};
  const marks = [];
  const gap = tall - block > 4 || below ? 0 : 1;
  for (const { kind, row, start, end, mark, tone } of seen.blocks) {
    if (end === null || end === start) continue;
    const top = box.top + tall * row + gap;
    const shape = (until) => {
      const wide = x(until) - x(start);
      return `M${x(start).toFixed(1)} ${top.toFixed(1)}h${Math.max(0.4, wide - (wide > 4 ? 1 : 0.2)).toFixed(1)}v${block.toFixed(1)}H${x(start).toFixed(1)}z`;
    };
    const key = `${kind}|${Math.round(tone * 20)}`;
    const path = (paths[key] ??= { kind, tone, done: [], ahead: [] });
    if (now >= end || now > start) path.done.push(shape(Math.min(now, end)));
    if (now < end) path.ahead.push(shape(end));
    if (mark !== null && x(end) - x(start) >= WIDE_ENOUGH && block >= 11) marks.push([(x(start) + x(end)) / 2, top + block / 2, mark]);
  }
  for (const [key, { kind, tone, done, ahead }] of Object.entries(paths)) {
    const fill = view.palette[view.rules.findIndex((rule) => rule.kind === kind)];
    sheet.draw("path", `ahead ${key}`, { d: ahead.join(""), fill, opacity: 0.16 });
    sheet.draw("path", `done ${key}`, { d: done.join(""), fill, opacity: 1 - view.palest * tone });
  }
  if (marks.length > AT_MOST) return;
  marks.forEach(([at, middle, mark], i) => sheet.draw("text", `mark${i}`, { x: at, y: middle + 4, class: "psi-mark", "text-anchor": "middle" }, number(mark)));
}

const legible = (tall, row) => tall >= 13 || row % Math.ceil(13 / tall) === 0;

function drawRow(sheet, view, row, { box, tall, block, below }) {
  const middle = box.top + tall * row + (below ? tall : block) / 2 + 4;
  if (legible(tall, row)) sheet.draw("text", `row${row}`, { x: box.left - 8, y: middle, class: "psi-tick", "text-anchor": "end" }, rowName(view, row));
}

function drawLevel(sheet, view, seen, level, row, { box, x, tall, block }) {
  const top = view.together ? box.top + tall * seen.rows + 8 : box.top + tall * row + block + 3;
  const low = view.together ? box.bottom : box.top + tall * (row + 1) - 2;
  const most = mostOf(seen.levels) || 1;
  const y = (amount) => (low - ((low - top) * amount) / most).toFixed(1);
  let path = `M${x(0)} ${low}`;
  for (const [time, amount] of level) path += `H${x(time).toFixed(1)}V${y(amount)}`;
  sheet.draw("path", `level${row}`, { d: `${path}H${x(seen.end)}V${low}z`, class: "psi-level" });
  const middle = (view.together ? (top + low) / 2 : box.top + tall * (row + 0.5)) + 4;
  if (view.together) sheet.draw("text", "level name", { x: box.left - 8, y: middle, class: "psi-tick", "text-anchor": "end" }, view.levelWhat);
  if (view.together || legible(tall, row)) sheet.draw("text", `most${row}`, { x: box.right + 8, y: middle, class: "psi-tick" }, write(mostOf([level]), view.levelUnit));
}
