// Stacked bars: the parts of a ledger, one column per choice, against a capacity.

const LINE = 15; // pixels from one line of text to the next
const RISE = 3; // pixels by which a figure moves up until nothing is in its way

function scene(view, state, evaluate) {
  const columns = view.columns.map(([value, label]) => {
    const given = { [view.across]: value };
    return {
      label,
      chosen: state[view.across] === value,
      parts: view.parts.map(([, name]) => evaluate(name, given)),
      total: evaluate(view.total, given),
      headroom: evaluate(view.headroom, given),
    };
  });
  return { columns, capacity: state[view.capacity] };
}

function describe(view, { columns, capacity }) {
  const chosen = columns.find((column) => column.chosen);
  const size = (value) => write(value, view.unit);
  const total = size(chosen.total);
  const twice = view.scale ? `${total} (${write(chosen.total, view.unit, 4, view.scale)})` : total;
  const good = chosen.headroom >= 0;
  const left = size(Math.abs(chosen.headroom));
  const fits = good ? `it fits in ${size(capacity)} with ${left} left` : `it does not fit in ${size(capacity)}: ${left} too much`;
  const told = inOneUnit([chosen.total, ...chosen.parts], view.unit).slice(1);
  const share = (part) => (chosen.total ? `${fixed((100 * part) / chosen.total, 1)}%` : "–");
  return {
    headline: total,
    detail: `${view.scale ? write(chosen.total, view.unit, 4, view.scale) + " · " : ""}${view.what}, ${chosen.label}`,
    lamp: { good, text: good ? `fits, ${left} left` : `does not fit, ${left} too much` },
    head: ["part", chosen.label, "share"],
    rows: view.parts.map(([label], i) => ({ colour: view.palette[i], cells: [label, told[i], share(chosen.parts[i])] })).reverse(),
    sentence: `${chosen.label}: ${view.what} ${twice}; ${fits}.`,
  };
}

function draw(sheet, view, { columns, capacity }) {
  const [width, height] = [sheet.root.viewBox.baseVal.width, sheet.root.viewBox.baseVal.height];
  const size = (value) => write(value, view.unit);
  const axis = roundAxis(Math.max(capacity, ...columns.map((column) => column.total)));
  const ticks = ticksUpTo(axis.top, axis.step);
  const [left, right] = [Math.max(60, 10 + widest(ticks.map(size))), width - roomOfLimit(view.capacityLabel, size(capacity))];
  const slot = (right - left) / columns.length;
  const middle = (i) => left + slot * (i + 0.5);
  const spans = (text) => columns.map((column, i) => stretchOf(text(column), figureLook(width, column.chosen), middle(i), right));
  const [names, totals] = [spans(({ label }) => label), spans(({ total }) => size(total))];
  const lines = linesOf(names);
  const box = { left, right, top: 40 + 2 * LINE * Math.max(...linesOf(totals)), bottom: height - 26 - LINE * Math.max(...lines) };
  const y = (value) => box.bottom - ((box.bottom - box.top) * value) / axis.top;
  drawAxis(sheet, box, ticks, y, size);
  drawLimit(sheet, box, y(capacity), view.capacityLabel, size(capacity));
  const taken = [{ ...box, top: y(capacity) - 2, bottom: y(capacity) + 2 }];
  columns.forEach((column, i) => {
    const top = drawColumn(sheet, view, column, i, { middle: middle(i), wide: Math.min(slot * 0.64, 92), y });
    drawTotal(sheet, column, i, { span: totals[i], top, taken, text: size(column.total) });
    sheet.draw("text", `label${i}`, { x: names[i].middle, y: box.bottom + 18 + LINE * lines[i], class: weightOf(column), "text-anchor": "middle" }, column.label);
  });
}

function stretchOf(text, look, middle, end) {
  const wide = widthOf(text, look);
  return stretch(middle - wide / 2, wide, 0, end);
}

const weightOf = (column) => (column.chosen ? "psi-figure psi-bold" : "psi-figure");

function drawAxis(sheet, box, ticks, y, size) {
  ticks.forEach((value, i) => {
    sheet.draw("line", `grid${i}`, { x1: box.left, x2: box.right, y1: y(value), y2: y(value), class: i ? "psi-grid" : "psi-axis" });
    sheet.draw("text", `tick${i}`, { x: box.left - 8, y: y(value) + 4, class: "psi-tick", "text-anchor": "end" }, size(value));
  });
}

// The parts, one on the other; returns where they end.
function drawColumn(sheet, view, column, i, { middle, wide, y }) {
  let below = 0;
  column.parts.forEach((part, k) => {
    const top = y(below + part);
    const tall = y(below) - top;
    const shape = { x: middle - wide / 2, y: top, width: wide, height: Math.max(0, tall - (tall > 3 ? 1 : 0)) };
    sheet.draw("rect", `part${i}.${k}`, { ...shape, fill: view.palette[k], class: column.chosen ? "psi-part" : "psi-part psi-faint" });
    below += part;
  });
  return y(below);
}

// What a column comes to and whether it fits, above it, and above the line and its neighbour's where these are in the way.
function drawTotal(sheet, column, i, { span, top, taken, text }) {
  const places = Array.from({ length: top / RISE }, (_, k) => ({ ...span, top: top - 31 - RISE * k, bottom: top - 3 - RISE * k }));
  const { middle: x, bottom } = firstFree(taken, places);
  const good = column.headroom >= 0;
  sheet.draw("text", `total${i}`, { x, y: bottom - 17, class: weightOf(column), "text-anchor": "middle" }, text);
  sheet.draw("text", `fits${i}`, { x, y: bottom - 3, class: good ? "psi-good" : "psi-bad", "text-anchor": "middle" }, good ? "fits" : "too big");
}
