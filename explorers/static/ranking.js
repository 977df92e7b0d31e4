// Plans ranked: every division of the cards is tried by the planner's rules and formulas, and the fastest are drawn as bars.

const STAGES = [0, 1, 2, 3];

function divisors(number) {
  return Array.from({ length: number }, (_, i) => i + 1).filter((divisor) => number % divisor === 0);
}

// Every plan in the planner's order: division of the cards, stage, micro-batch in doublings, recomputation.
function* everyPlan(known) {
  const parts = divisors(known.num_gpus);
  for (const tensor_parallel of parts)
    for (const num_stages of parts) {
      const cut = { ...known, tensor_parallel, num_stages, context_parallel: 1 };
      const world_size = FORMULAS.data_parallel_ranks(cut);
      if (!Number.isInteger(world_size)) continue;
      const most = FORMULAS.needed_accumulation_steps({ ...known, world_size, micro_batch: 1 });
      for (const stage of STAGES)
        for (let size = 1; size <= most; size += size)
          for (const recomputed of [0, 1]) yield { tensor_parallel, num_stages, world_size, stage, micro_batch: size, recomputed };
    }
}

function scene(view, state, evaluate) {
  const known = state.num_gpus <= state.ranks_per_node ? { ...state, bandwidth: state.link_bandwidth } : state;
  const room = known.memory_capacity - known.reserve_bytes;
  const failed = Object.fromEntries(Object.keys(view.fails).map((name) => [name, 0]));
  const good = [];
  for (const plan of everyPlan(known)) {
    const here = { ...known, ...plan };
    const broken = view.rules.find((name) => !EXPRESSIONS[`rule ${name}`](here));
    const made = broken ? null : costs(view, here, plan);
    if (broken) failed[broken] += 1;
    else if (made.memory > room) failed.memory += 1;
    else good.push(made);
  }
  good.sort((one, other) => one.step - other.step || one.memory - other.memory);
  for (const name of Object.keys(failed)) if (!failed[name]) delete failed[name];
  return { best: good.slice(0, view.shown), good: good.length, failed };
}

function costs(view, here, plan) {
  here.num_micro_batches = FORMULAS.needed_accumulation_steps(here);
  for (const name of view.times) here[name] = FORMULAS[name](here);
  const [work, layers, replicas, hidden] = view.times.map((name) => here[name]);
  const times = [work, layers, Math.max(0, replicas - hidden)];
  return { label: labelOf(plan), memory: FORMULAS[view.memory](here), step: FORMULAS[view.step](here), times };
}

function labelOf(plan) {
  const cut = `t=${plan.tensor_parallel} P=${plan.num_stages} k=${plan.world_size}`;
  return `${cut} ZeRO-${plan.stage} b=${plan.micro_batch}${plan.recomputed ? " recomputed" : ""}`;
}

function describe(view, { best, good, failed }) {
  const time = (value) => write(value, view.units.seconds, 3);
  const size = (value) => write(value, view.units.bytes, 3);
  const reasons = Object.entries(failed).map(([name, count]) => `${count} ${view.fails[name]}`);
  const first = best[0];
  const steps = inOneUnit(best.map(({ step }) => step), view.units.seconds, 3);
  const sizes = inOneUnit(best.map(({ memory }) => memory), view.units.bytes, 3);
  const works = first
    ? `${good} plans work. Fastest: ${first.label}, ${time(first.step)} a step, ${size(first.memory)} on the fullest card.`
    : `No plan works: ${reasons.join(", ")}.`;
  return {
    headline: first ? time(first.step) : "no plan works",
    detail: first ? `${first.label}, ${size(first.memory)} on the fullest card` : "see below why",
    lamp: { good: Boolean(first), text: first ? `${good} plans work` : "no plan works" },
    head: view.head,
    rows: [
      ...best.map((row, i) => ({ cells: [row.label, steps[i], sizes[i]], chosen: i === 0 })),
      ...Object.entries(failed).map(([name, count]) => ({ cells: [`${count} plans: ${view.fails[name]}`, "", ""] })),
    ],
    sentence: works,
  };
}

function draw(sheet, view, { best }) {
  const { width, height } = sheet.root.viewBox.baseVal;
  if (!best.length) return;
  const lines = drawNames(sheet, view, width);
  const box = { left: 14, right: width - 16, top: 14 + 16 * lines, bottom: height - 26 };
  const axis = roundAxis(Math.max(...best.map((row) => row.step)));
  const x = (value) => box.left + ((box.right - box.left) * value) / axis.top;
  const ticks = Array.from({ length: Math.round(axis.top / axis.step) + 1 }, (_, i) => i * axis.step);
  const labels = inOneUnit(ticks, view.units.seconds, 3);
  ticks.forEach((value, i) => {
    const at = x(value);
    sheet.draw("line", `grid${i}`, { x1: at, x2: at, y1: box.top, y2: box.bottom, class: i ? "psi-grid" : "psi-axis" });
  });
  drawLabels(sheet, "tick", ticks.map((value, i) => [x(value), labels[i]]), box.bottom + 16, 0, width);
  const slot = (box.bottom - box.top) / best.length;
  best.forEach((row, i) => drawPlan(sheet, view, row, i, { y: box.top + slot * i, slot, x }));
}

// What the colours mean, in as many lines as it takes; returns how many.
function drawNames(sheet, view, width) {
  const spans = view.drawn.map((name, i) => stretch(14 + (width / view.drawn.length) * i, 14 + widthOf(name), 14, width));
  const lines = linesOf(spans);
  view.drawn.forEach((name, i) => {
    const [{ left }, top] = [spans[i], 8 + 16 * lines[i]];
    sheet.draw("rect", `name swatch${i}`, { x: left, y: top, width: 10, height: 10, fill: view.palette[i] });
    sheet.draw("text", `name${i}`, { x: left + 14, y: top + 9, class: "psi-tick" }, name);
  });
  return 1 + Math.max(...lines);
}

function drawPlan(sheet, view, row, i, { y, slot, x }) {
  let before = 0;
  const tall = Math.min(slot * 0.42, 14);
  sheet.draw("text", `plan${i}`, { x: x(0) + 4, y: y + slot / 2 - 3, class: i ? "psi-figure" : "psi-figure psi-bold" }, row.label);
  row.times.forEach((time, k) => {
    const shape = { x: x(before), y: y + slot / 2 + 1, width: Math.max(0, x(before + time) - x(before)), height: tall, fill: view.palette[k] };
    sheet.draw("rect", `time${i}.${k}`, { ...shape, class: i ? "psi-part psi-faint" : "psi-part" });
    before += time;
  });
}
