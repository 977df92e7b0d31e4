// Work laid out in time by rules, as explorers/plan.py does: rows work through their blocks in turn, each as soon as the row
// is free and what it waits for has ended. The rules' expressions are in EXPRESSIONS, under keys such as "forward row".

const FIELDS = ["row", "turn", "length", "takes", "frees", "mark", "tone"];

function layOut({ rules, mostBlocks }, known, rows) {
  const sizes = {};
  let total = 0;
  for (const { kind, over } of rules) {
    const counts = over.map((name) => EXPRESSIONS[`${kind} over ${name}`](known));
    sizes[kind] = { over, counts, first: total };
    total += counts.reduce((product, count) => product * count, 1);
  }
  const lines = Array.from({ length: rows }, () => []);
  const blocks = [];
  if (total > mostBlocks) return { blocks, lines, fault: `${number(total)} blocks are too many to draw.` };
  for (const rule of rules) addBlocks(blocks, rule, { ...known }, sizes);
  for (const block of blocks) lines[block.row].push(block);
  lines.forEach((line) => line.sort((one, other) => one.turn - other.turn));
  return { blocks, lines, fault: run(blocks, lines) ? "Some blocks wait for each other for ever." : "" };
}

function addBlocks(blocks, rule, here, sizes) {
  const { counts } = sizes[rule.kind];
  const [row, turn, length, takes, frees, mark, tone] = FIELDS.map((name) => EXPRESSIONS[`${rule.kind} ${name}`] ?? (() => null));
  const waits = rule.after.map((kind, i) => ({
    ...sizes[kind],
    places: sizes[kind].over.map((name) => EXPRESSIONS[`${rule.kind} after ${i} ${name}`]),
  }));
  const visit = (depth) => {
    if (depth === counts.length) {
      const block = { kind: rule.kind, row: row(here), turn: turn(here), length: length(here), takes: takes(here), frees: frees(here) };
      blocks.push(Object.assign(block, { mark: mark(here), tone: tone(here), start: null, end: null, after: [] }));
      for (const wait of waits) {
        const place = placeOf(wait, here);
        if (place >= 0) block.after.push(place);
      }
      return;
    }
    for (let i = 0; i < counts[depth]; i++) {
      here[rule.over[depth]] = i;
      visit(depth + 1);
    }
  };
  visit(0);
}

// Where the block that is waited for stands in the list, or -1 if there is no such block.
function placeOf({ counts, first, places }, here) {
  let place = 0;
  for (let i = 0; i < places.length; i++) {
    const value = places[i](here);
    if (!(value >= 0 && value < counts[i])) return -1;
    place = place * counts[i] + Math.trunc(value);
  }
  return first + place;
}

// Gives every block its start and end; returns whether some are left that wait for each other.
function run(blocks, lines) {
  const position = lines.map(() => 0);
  const free = lines.map(() => 0);
  for (let moved = true; moved; ) {
    moved = false;
    lines.forEach((line, row) => {
      while (position[row] < line.length && line[position[row]].after.every((i) => blocks[i].end !== null)) {
        const block = line[position[row]];
        block.start = block.after.reduce((start, i) => Math.max(start, blocks[i].end), free[row]);
        block.end = free[row] = block.start + block.length;
        position[row] += 1;
        moved = true;
      }
    });
  }
  return lines.some((line, row) => position[row] < line.length);
}

function endOf({ lines }) {
  return Math.max(0, ...lines.flatMap((line) => line.findLast((block) => block.end !== null)?.end ?? []));
}

function busyOf({ lines }, row) {
  return lines[row].reduce((sum, block) => sum + block.length, 0);
}

function spanOf({ lines }, row) {
  const mine = lines[row].filter((block) => block.end !== null);
  return mine.length ? mine.at(-1).end - mine[0].start : 0;
}

// What blocks occupy: [time, amount] from each change on. What ends frees first, what starts takes then.
function levelOf(blocks) {
  const run = blocks.filter((block) => block.end !== null);
  const changes = [...run.map((block) => [block.start, 1, block.takes]), ...run.map((block) => [block.end, 0, -block.frees])];
  changes.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  let amount = 0;
  const found = [[0, 0]];
  for (const [time, , by] of changes) {
    if (!by) continue;
    amount += by;
    if (found.at(-1)[0] === time) found.pop();
    found.push([time, amount]);
  }
  return found;
}
