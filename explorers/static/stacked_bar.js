// Stacked bars: the parts of a ledger, one column per choice, against a capacity.

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
  const box = { left: 60, right: width - 60, top: 40, bottom: height - 26 };
  const axis = roundAxis(Math.max(capacity, ...columns.map((column) => column.total)));
  const y = (value) => box.bottom - ((box.bottom - box.top) * value) / axis.top;
  drawAxis(sheet, box, axis, y, (value) => write(value, view.unit));
  const slot = (box.right - box.left) / columns.length;
  columns.forEach((column, i) => drawColumn(sheet, view, column, i, { x: box.left + slot * i, slot, y, box }));
  drawLimit(sheet, box, y(capacity), view.capacityLabel, write(capacity, view.unit));
}

function drawAxis(sheet, box, axis, y, label) {
  for (let i = 0; i * axis.step <= axis.top * 1.0001; i++) {
    const at = y(i * axis.step);
    sheet.draw("line", `grid${i}`, { x1: box.left, x2: box.right, y1: at, y2: at, class: i ? "psi-grid" : "psi-axis" });
    sheet.draw("text", `tick${i}`, { x: box.left - 8, y: at + 4, class: "psi-tick", "text-anchor": "end" }, label(i * axis.step));
  }
}

function drawColumn(sheet, view, column, i, { x, slot, y, box }) {
  const wide = Math.min(slot * 0.64, 92);
  const middle = x + slot / 2;
  let below = 0;
  column.parts.forEach((part, k) => {
    const top = y(below + part);
    const tall = y(below) - top;
    const shape = { x: middle - wide / 2, y: top, width: wide, height: Math.max(0, tall - (tall > 3 ? 1 : 0)) };
    sheet.draw("rect", `part${i}.${k}`, { ...shape, fill: view.palette[k], class: column.chosen ? "psi-part" : "psi-part psi-faint" });
    below += part;
  });
  const good = column.headroom >= 0;
  const above = y(below);
  const place = { x: middle, "text-anchor": "middle" };
  const weight = column.chosen ? "psi-figure psi-bold" : "psi-figure";
  sheet.draw("text", `total${i}`, { ...place, y: above - 20, class: weight }, write(column.total, view.unit));
  sheet.draw("text", `fits${i}`, { ...place, y: above - 6, class: good ? "psi-good" : "psi-bad" }, good ? "fits" : "too big");
  sheet.draw("text", `label${i}`, { ...place, y: box.bottom + 18, class: weight }, column.label);
}
