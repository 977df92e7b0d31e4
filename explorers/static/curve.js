// Curves: formulas over a swept quantity, with a marker where the control stands and a line they should stay under.

const MARGIN = 12; // pixels between the curves and the ends of the picture

function scene(view, state, evaluate) {
  const here = state[view.sweep];
  const series = view.series.map(({ label, name, given, chosen }) => ({
    label,
    chosen: Object.entries(chosen).every(([key, value]) => state[key] === value),
    points: view.points.map((x) => [x, evaluate(name, { ...given, [view.sweep]: x })]),
    value: evaluate(name, given),
  }));
  const marks = view.marks.map(([label, name]) => {
    const at = evaluate(name, {});
    const { name: curve, given } = view.series[0];
    const value = evaluate(curve, { ...given, [view.sweep]: view.sweepWhole ? Math.round(at) : at });
    return { label, at, value };
  });
  return { series, here, limit: view.limit ? state[view.limit] : null, marks };
}

function describe(view, { series, here, limit, marks }) {
  const size = (value) => sizeOn(view, value);
  const main = series.find((one) => one.chosen);
  const place = (value) => `${view.sweepLabel}: ${spoken(value, view.sweepUnit)}`;
  const marked = (mark) => `${mark.label} (${place(mark.at)})`;
  const at = place(here);
  const good = limit !== null && main.value <= limit;
  const fits = limit === null ? "" : `${good ? "within" : "over"} ${size(limit)} (${view.limitLabel})`;
  const told = inOneUnit([...series, ...marks].map(({ value }) => value), view.unit, 4, view.scale);
  return {
    headline: size(main.value),
    detail: `${view.what}, ${main.label}, ${at}`,
    lamp: limit === null ? null : { good, text: fits },
    head: [view.what, at],
    rows: [
      ...series.map(({ label, chosen }, i) => ({ colour: view.palette[i], cells: [label, told[i]], chosen })),
      ...marks.map((mark, i) => ({ cells: [marked(mark), told[series.length + i]] })),
    ],
    sentence: `${at}. ${main.label}: ${view.what} ${size(main.value)}${fits && `, ${fits}`}.${marks.map((mark) => ` ${marked(mark)}.`).join("")}`,
  };
}

function draw(sheet, view, { series, here, limit, marks }) {
  const [width, height] = [sheet.root.viewBox.baseVal.width, sheet.root.viewBox.baseVal.height];
  const [top, bottom] = [4, height - 40];
  const shown = series.flatMap(({ points }) => points.map(([, y]) => y)).concat(limit ?? []);
  const y = axisOf(shown, view.log[1], bottom - (view.log[1] ? MARGIN : 0), top + MARGIN, 5, view.unit);
  const limited = limit !== null && y.holds(limit);
  const left = Math.max(62, 10 + widest(y.ticks.map((value) => sizeOn(view, value))));
  const right = width - (limited ? roomOfLimit(view.limitLabel, sizeOn(view, limit)) : 16);
  const box = { left, right, top, bottom };
  const x = axisOf([...view.points, here], view.log[0], box.left, box.right, width / 90, view.sweepUnit);
  drawGrid(sheet, box, x, y, view, limited ? right : width);
  series.forEach((one, i) => {
    const attributes = { d: pathOf(one.points, x, y), stroke: view.palette[i], class: one.chosen ? "psi-curve psi-main" : "psi-curve" };
    sheet.draw("path", `curve${i}`, attributes);
  });
  sheet.draw("line", "here", { x1: x.at(here), x2: x.at(here), y1: box.top, y2: box.bottom, class: "psi-here" });
  series.forEach((one, i) => {
    if (y.holds(one.value)) sheet.draw("circle", `dot${i}`, { cx: x.at(here), cy: y.at(one.value), r: one.chosen ? 6 : 4, fill: view.palette[i], class: "psi-dot" });
  });
  drawMarks(sheet, box, x, y, marks, figureLook(width, true));
  if (limited) drawLimit(sheet, box, y.at(limit), view.limitLabel, sizeOn(view, limit));
}

// Notable places: a diamond on the curve and its name beside it, clear of the others; what lies outside the picture is only in the table.
function drawMarks(sheet, box, x, y, marks, look) {
  const seen = marks.map(({ label, at, value }) => ({ label, across: x.at(at), up: y.at(value), held: x.holds(at) && y.holds(value) }));
  const inside = seen.filter(({ held, across, up }) => held && across >= box.left && across <= box.right && up >= box.top && up <= box.bottom);
  const taken = inside.map(({ across, up }) => ({ left: across - 7, right: across + 7, top: up - 7, bottom: up + 7 }));
  inside.forEach(({ label, across, up }, i) => {
    sheet.draw("line", `mark line${i}`, { x1: across, x2: across, y1: up, y2: box.bottom, class: "psi-limit" });
    sheet.draw("path", `mark${i}`, { d: `M${across} ${up - 7}l7 7l-7 7l-7 -7z`, class: "psi-notable" });
    const { middle, bottom } = firstFree(taken, placesOf(label, across, up, box, look));
    sheet.draw("text", `mark label${i}`, { x: middle, y: bottom - 3, class: "psi-figure psi-bold", "text-anchor": "middle" }, label);
  });
}

// Where a mark's name may stand, the best first: to its right and to its left, above it, higher and higher, then below.
function placesOf(label, across, up, box, look) {
  const [wide, tall] = [widthOf(label, look), 16];
  const sides = [across, across - wide].map((left) => stretch(left, wide, box.left, box.right));
  const lines = Array.from({ length: Math.floor((box.bottom - box.top) / tall) }, (_, i) => i * tall);
  const bottoms = [...lines.map((line) => up - 9 - line), ...lines.map((line) => up + 9 + tall + line)];
  const inside = bottoms.filter((bottom) => bottom - tall >= box.top && bottom <= box.bottom);
  return inside.flatMap((bottom) => sides.map((side) => ({ ...side, top: bottom - tall, bottom })));
}

// A scale from values to pixels: { at, holds, ticks }. Values that a log axis cannot hold are left out.
function axisOf(values, log, from, to, count, unit) {
  const holds = (value) => Number.isFinite(value) && (!log || value > 0);
  const held = values.filter(holds);
  return { ...(log ? logAxis(held, from, to, count, unit) : linearAxis(held, from, to, count)), holds };
}

function linearAxis(held, from, to, count) {
  const { step, top } = roundAxis(Math.max(...held), count);
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step);
  return { at: (value) => from + ((to - from) * value) / top, ticks };
}

function logAxis(held, from, to, count, unit) {
  const [least, most] = [Math.min(...held), Math.max(...held)];
  const [low, high] = [least, most].map(Math.log10);
  const wide = high - low || 1;
  return { at: (value) => from + ((to - from) * (Math.log10(value) - low)) / wide, ticks: logTicks(least, most, count, unit) };
}

// Powers of ten, or of time round minutes, hours and days; all of them, every other, … or those between as well, as there is room.
function logTicks(least, most, count, unit) {
  const inside = (values) => values.filter((value) => value >= least * 0.9999 && value <= most * 1.0001);
  const powers = Array.from({ length: 40 }, (_, i) => 10 ** (i - 20 + Math.round(Math.log10(least * most) / 2)));
  const tens = inside(unit === "second" ? [...powers.filter((power) => power < 30), ...roundTimes()] : powers);
  if (tens.length < 3) return inside(powers.flatMap((power) => [power, 2 * power, 5 * power]));
  const every = Math.ceil(tens.length / count);
  return tens.filter((_, i) => i % every === 0);
}

// 1 and 10 of each unit above the second, and 100 and so on of the largest, ascending.
function roundTimes() {
  const [largest, ...others] = UNITS.second.scales.map(([, size]) => size).filter((size) => size > 1);
  return [...others.reverse().flatMap((size) => [size, 10 * size]), ...[1, 10, 100].map((many) => many * largest)];
}

function pathOf(points, x, y) {
  let pen = "M";
  const steps = [];
  for (const [across, up] of points) {
    if (y.holds(up)) steps.push(`${pen}${x.at(across).toFixed(1)} ${y.at(up).toFixed(1)}`);
    pen = y.holds(up) ? "L" : "M";
  }
  return steps.join("");
}

function sizeOn(view, value) {
  return spoken(value, view.unit, 4, view.scale);
}

function drawGrid(sheet, box, x, y, view, end) {
  const lines = linesOf(y.ticks.map((value) => ({ left: -y.at(value), right: 10 - y.at(value) })));
  y.ticks.forEach((value, i) => {
    const at = y.at(value);
    sheet.draw("line", `row${i}`, { x1: box.left, x2: box.right, y1: at, y2: at, class: "psi-grid" });
    // a figure too near the one below it is left out
    if (!lines[i]) sheet.draw("text", `row tick${i}`, { x: box.left - 8, y: at + 4, class: "psi-tick", "text-anchor": "end" }, sizeOn(view, value));
  });
  x.ticks.forEach((value, i) => sheet.draw("line", `column${i}`, { x1: x.at(value), x2: x.at(value), y1: box.bottom, y2: box.bottom + 5, class: "psi-axis" }));
  drawLabels(sheet, "column tick", x.ticks.map((value) => [x.at(value), spoken(value, view.sweepUnit)]), box.bottom + 18, 0, end);
  sheet.draw("line", "axis", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "psi-axis" });
  sheet.draw("text", "x label", { x: (box.left + box.right) / 2, y: box.bottom + 35, class: "psi-tick", "text-anchor": "middle" }, view.sweepLabel);
}
