// Grids: cells coloured and numbered by rules, whose expressions are in EXPRESSIONS, or by a table for each frame.

const MARKED_FROM = 13; // pixels of a cell that a number is written into

function scene(view, state, evaluate) {
  const known = { ...state };
  for (const name of view.needed) known[name] = evaluate(name, {});
  const value = (name) => EXPRESSIONS[name]?.(known) ?? null;
  const table = view.frames && view.by.reduce((frames, name) => frames[state[name]], view.frames);
  const [rows, columns] = [value("rows"), value("columns")];
  const cells = [];
  const notes = [];
  for (let row = 0; row < rows; row++) {
    known.row = row;
    for (const [name, values] of Object.entries(view.byRow)) known[name] = values[row];
    for (const name of view.where) known[name] = EXPRESSIONS[`where ${name}`](known);
    if (EXPRESSIONS.note) notes.push(value("note"));
    const line = [];
    for (let column = 0; column < columns; column++) {
      known.column = column;
      line.push([table ? table[row][column] : value("cell"), value("mark"), value("tone"), value("outline")]);
    }
    cells.push(line);
  }
  const ofKind = (name) => cells.flat().filter(([kind]) => kind === view.legend.indexOf(name)).length;
  return { cells, notes, figure: view.headline ? evaluate(view.headline, {}) : view.counted ? ofKind(view.counted) : 0 };
}

function called(label, i) {
  return typeof label === "string" ? label.replace("{}", i + 1) : label[i];
}

function describe(view, { cells, notes, figure }) {
  const size = spoken(figure, view.unit, 4, view.scale);
  const all = cells.flat();
  const counts = view.legend.map((name, kind) => all.filter((cell) => cell[0] === kind).length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const told = view.headline || view.counted;
  const counting = counts.map((count, kind) => `${count} ${view.legend[kind]}`).join(", ");
  const noted = notes.map((note, row) => ` ${called(view.rowLabel, row)} ${view.noteWhat} ${number(note)}.`).join("");
  return {
    headline: told ? size : "",
    detail: view.what,
    lamp: null,
    head: [view.cells, "number", "share"],
    rows: [
      ...view.legend.map((name, kind) => ({
        colour: view.palette[kind % view.palette.length],
        cells: [name, String(counts[kind]), total ? `${fixed((100 * counts[kind]) / total, 1)}%` : "–"],
      })),
      ...notes.map((note, row) => ({ cells: [called(view.rowLabel, row), view.noteWhat, number(note)] })),
    ],
    sentence: `${told ? `${size} ` : ""}${view.what}. ${capital(view.cells)} in ${cells.length} rows: ${counting}.${noted}`,
  };
}

function draw(sheet, view, { cells, notes }) {
  const [width, height] = [sheet.root.viewBox.baseVal.width, sheet.root.viewBox.baseVal.height];
  const letter = 7; // pixels, about
  const longest = Math.max(...cells.map((_, row) => called(view.rowLabel, row).length));
  const box = { left: Math.min(110, 16 + letter * longest), right: width - (notes.length ? 96 : 10), top: view.columnLabel || notes.length ? 22 : 6, bottom: height - 6 };
  const side = Math.min((box.right - box.left) / cells[0].length, (3 * (box.bottom - box.top)) / cells.length, 60);
  const tall = Math.min((box.bottom - box.top) / cells.length, Math.max(side, 26));
  const gap = side > 6 ? 1 : side > 3 ? 0.5 : 0;
  if (view.columnLabel) {
    const names = cells[0].map((_, column) => [box.left + side * (column + 0.5), called(view.columnLabel, column)]);
    drawLabels(sheet, "column", names, box.top - 6, 0, notes.length ? box.right : width);
  }
  cells.forEach((line, row) => {
    const top = box.top + tall * row;
    if (tall >= 12 || row % Math.ceil(12 / tall) === 0) drawName(sheet, `row${row}`, box.left - 8, top + tall / 2 + 4, "end", called(view.rowLabel, row));
    if (notes.length) drawName(sheet, `note${row}`, box.left + side * line.length + 8, top + tall / 2 + 4, "start", number(notes[row]));
    line.forEach(([kind, mark, tone, outline], column) => {
      if (kind < 0) return;
      const shape = { x: box.left + side * column, y: top, width: side - gap, height: tall - gap };
      const look = { fill: view.palette[kind % view.palette.length], "fill-opacity": 1 - view.palest * tone, class: outline ? "psi-cell psi-outline" : "psi-cell" };
      sheet.draw("rect", `cell${row}.${column}`, { ...shape, ...look });
      if (mark !== null && side >= MARKED_FROM) sheet.draw("text", `mark${row}.${column}`, { x: shape.x + side / 2, y: top + tall / 2 + 4, class: "psi-mark", "text-anchor": "middle" }, number(mark));
    });
  });
  if (notes.length && view.noteWhat) drawName(sheet, "notes", width - 8, box.top - 8, "end", view.noteWhat);
}

function drawName(sheet, key, x, y, anchor, text) {
  sheet.draw("text", key, { x, y, class: "psi-tick", "text-anchor": anchor }, text);
}
