// The native inputs of one control. `settings` is where they read and write; each returns { row, show }.

const CONTROLS = { slider: sliderControl, step: stepControl, choice: choiceControl };

function nearestStop(stops, value) {
  let best = 0;
  stops.forEach((stop, i) => {
    if (Math.abs(stop - value) < Math.abs(stops[best] - value)) best = i;
  });
  return best;
}

function sliderControl(control, settings, id) {
  const { name, stops, unit } = control;
  const label = element("label", { for: id }, capital(control.label));
  const range = element("input", { type: "range", id, min: 0, max: stops.length - 1, step: 1, "data-name": name });
  const box = element("input", { type: "text", class: "psi-box", autocomplete: "off", spellcheck: "false" });
  const fault = element("p", { class: "psi-fault", id: `${id}-fault`, role: "alert" });
  box.setAttribute("aria-label", `${capital(control.label)}, typed`);
  box.setAttribute("aria-describedby", fault.id);

  const show = () => {
    const value = settings.get(name);
    const text = spoken(value, unit);
    range.value = nearestStop(stops, value);
    range.setAttribute("aria-valuetext", text);
    if (box !== box.getRootNode().activeElement || !box.dataset.typing) box.value = text;
    range.style.setProperty("--psi-done", `${(100 * range.value) / (stops.length - 1)}%`);
  };
  const complain = (text) => {
    fault.textContent = text;
    box.setAttribute("aria-invalid", text ? "true" : "false");
  };
  const typed = () => {
    delete box.dataset.typing;
    const value = accepted(control, read(box.value, unit));
    complain(Number.isNaN(value) ? refusal(control, box.value) : "");
    if (!Number.isNaN(value)) {
      settings.set({ [name]: value });
      show();
    }
  };
  const step = (by) => {
    const value = settings.get(name);
    const next = by > 0 ? stops.find((stop) => stop > value) : stops.findLast((stop) => stop < value);
    if (next !== undefined) settings.set({ [name]: next });
  };
  range.addEventListener("input", () => {
    complain("");
    settings.set({ [name]: stops[range.value] });
  });
  box.addEventListener("input", () => (box.dataset.typing = "yes"));
  box.addEventListener("change", typed);
  box.addEventListener("keydown", (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    delete box.dataset.typing;
    complain("");
    step(by);
  });
  return { row: element("div", { class: "psi-row" }, label, box, range, fault), show };
}

// A step of a picture that moves: a slider as long as the picture has steps, and a button that plays them.
function stepControl(control, settings, id) {
  const { name, unit, pace } = control;
  const label = element("label", { for: id }, capital(control.label));
  const range = element("input", { type: "range", id, min: 0, step: 1, "data-name": name });
  const button = element("button", { type: "button", class: "psi-play" });
  const most = () => (control.upTo ? EXPRESSIONS[control.upTo](settings.state()) : control.stops.at(-1));
  let timer = null;
  const show = () => {
    const value = Math.min(settings.get(name), most());
    range.max = most();
    range.value = value;
    range.setAttribute("aria-valuetext", `${write(value, unit)} of ${write(most(), unit)}`);
    range.style.setProperty("--psi-done", `${(100 * value) / most()}%`);
    button.textContent = timer ? "❚❚ pause" : "▶ play";
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
  };
  const advance = () => {
    const next = Math.min(settings.get(name), most()) + 1;
    if (next >= most() || !button.isConnected) stop();
    settings.set({ [name]: Math.min(next, most()) });
    show();
  };
  button.addEventListener("click", () => {
    if (timer) stop();
    else {
      if (settings.get(name) >= most()) settings.set({ [name]: 0 });
      timer = setInterval(advance, pace);
    }
    show();
  });
  range.addEventListener("input", () => {
    stop();
    settings.set({ [name]: Number(range.value) });
  });
  return { row: element("div", { class: "psi-row" }, label, button, range), show };
}

// A value as the quantity takes it, or NaN: whole where it counts something, inside its bounds.
function accepted({ whole, least, most }, value) {
  const settled = whole ? Math.round(value) : value;
  return settled >= (least ?? -Infinity) && settled <= (most ?? Infinity) && Number.isFinite(settled) ? settled : NaN;
}

function refusal(control, text) {
  const examples = [control.stops[0], control.stops.at(-1)].map((value) => spoken(value, control.unit));
  return `“${text.slice(0, 30)}” cannot stand here; write an amount such as ${examples.join(" or ")}`;
}

function choiceControl(control, settings, id) {
  const label = element("label", { for: id }, capital(control.label));
  const hint = element("p", { class: "psi-hint", id: `${id}-hint` });
  const options = control.options.map((option, i) => element("option", { value: i }, option.label));
  const select = element("select", { id, "data-name": control.name, "aria-describedby": hint.id }, ...options);
  const show = () => {
    const chosen = optionOf(control, settings.get(control.name));
    select.value = control.options.indexOf(chosen);
    hint.textContent = chosen.hint;
  };
  select.addEventListener("change", () => settings.set({ [control.name]: control.options[select.value].value }));
  return { row: element("div", { class: "psi-row psi-choice" }, label, select, hint), show };
}

function optionOf(control, value) {
  return control.options.find((option) => option.value === value) ?? control.options[0];
}

// A list of named settings. What it shows is found from the settings, so it says "your own" once one of them has moved;
// where several presets agree (two cards with one memory), the one last chosen stays.
function presetControl(preset, settings, id) {
  const label = element("label", { for: id }, capital(preset.label));
  const options = preset.options.map((option, i) => element("option", { value: i }, option.label));
  const select = element("select", { id }, element("option", { value: -1 }, "your own"), ...options);
  const stands = (option) => Object.entries(option.sets).every(([name, value]) => settings.get(name) === value);
  let chosen = -1;
  const show = () => {
    if (chosen < 0 || !stands(preset.options[chosen])) chosen = preset.options.findIndex(stands);
    select.value = chosen;
  };
  select.addEventListener("change", () => {
    chosen = Number(select.value);
    if (chosen >= 0) settings.set(preset.options[chosen].sets);
    show();
  });
  return { row: element("div", { class: "psi-row psi-choice" }, label, select), show };
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
