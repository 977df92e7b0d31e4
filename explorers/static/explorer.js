// The shell: settings kept in the widget's model, controls that move them, and a view that is repainted when they move.

function render({ model, el }) {
  const spec = model.get("spec");
  const id = `psi-${Math.random().toString(36).slice(2)}`;
  const names = spec.controls.map((control) => control.name);
  const sheet = new Sheet(spec.title, id);
  const report = new Report();
  const settings = { get: (name) => model.get(name), set: (values) => change(model, values), state: () => stateOf(spec, model) };
  const rows = [
    ...spec.presets.map((preset, i) => presetControl(preset, settings, `${id}-preset-${i}`)),
    ...spec.controls.map((control) => CONTROLS[control.kind](control, settings, `${id}-${control.name}`)),
  ];
  const picture = element("div", { class: "psi-picture" });
  picture.append(sheet.root);
  lay(el, spec, rows, picture, report);
  let width = picture.clientWidth;

  const paint = () => {
    const state = stateOf(spec, model);
    const seen = scene(spec.view, state, (name, given) => FORMULAS[name]({ ...state, ...given }));
    const said = describe(spec.view, seen);
    sheet.begin(...sizeOf(width, spec.view.height), said.sentence);
    draw(sheet, spec.view, seen);
    sheet.end();
    report.show(said);
  };
  const update = () => {
    rows.forEach(({ show }) => show());
    paint();
    keepResults(spec, model);
    save(model);
  };
  const soon = onceATurn(update);
  names.forEach((name) => model.on(`change:${name}`, soon));
  const watcher = new ResizeObserver(() => {
    width = picture.clientWidth; // read while the layout stands: after a change it would have to be made anew
    paint();
  });
  watcher.observe(picture);
  update();
  return () => {
    watcher.disconnect();
    names.forEach((name) => model.off(`change:${name}`, soon));
  };
}

function lay(el, spec, rows, picture, report) {
  const legend = element("legend", {}, spec.title);
  const controls = element("fieldset", { class: "psi-controls" }, legend, ...rows.map(({ row }) => row));
  el.classList.add("psi-explorer");
  for (const [name, colour] of Object.entries(spec.colours)) el.style.setProperty(`--psi-${name}`, colour);
  el.append(element("div", { class: "psi-columns" }, controls, element("div", { class: "psi-shown" }, picture, report.root)));
  // A notebook would take the keys for its own: arrows move between cells, d d deletes one. Saving stays its business.
  el.addEventListener("keydown", (event) => {
    if (!((event.ctrlKey || event.metaKey) && event.key === "s")) event.stopPropagation();
  });
}

// Every quantity's value, as the controls give it.
function stateOf(spec, model) {
  const given = spec.controls.map((control) => {
    const value = model.get(control.name);
    if (control.kind === "choice") return optionOf(control, value).gives;
    return { [control.name]: control.whole ? Math.round(value) : value };
  });
  const state = Object.assign({}, spec.fixed, ...given);
  for (const { name, upTo } of spec.controls) if (upTo) state[name] = Math.min(state[name], EXPRESSIONS[upTo](state));
  return state;
}

function change(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
}

// The results are the model's too, so that other widgets can be linked to them. A kernel computes them as well; figures
// that differ only in their last digit are left alone, so that the two do not answer each other for ever.
function keepResults(spec, model) {
  const state = stateOf(spec, model);
  for (const name of spec.results) {
    const value = FORMULAS[name](state);
    const result = Number.isFinite(value) ? value : null;
    if (!same(result, model.get(name))) model.set(name, result);
  }
}

function same(one, other) {
  return one === other || (one !== null && other !== null && Math.abs(one - other) <= 64 * Number.EPSILON * Math.abs(one));
}

// The kernel is told once a turn what moved and what came of it; a widget's model sends nothing if nothing did.
function save(model) {
  try {
    model.save_changes();
  } catch {
    // No kernel behind the page: the model holds the change, and that is all there is to do.
  }
}

// Many settings may move at once (a preset); one repaint follows, still before the next frame.
function onceATurn(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      action();
    });
  };
}

function sizeOf(room, height) {
  const width = Math.max(260, Math.min(room || 560, 760));
  return [width, height ?? Math.round(Math.max(220, Math.min(width * 0.6, 340)))];
}
