// Amounts as text and back, by the tables UNITS, COUNT_SCALES and GIGA_UP_TO that come from Python, and rounding as Python rounds.

const TAIL = 25; // digits enough to tell an exact tie from a figure beside it
const TIE = "5" + "0".repeat(TAIL - 1);

// `text` has TAIL digits too many: without them if they are an exact tie after an even digit, else `rounded`.
function halfToEven(text, rounded) {
  const kept = text.slice(0, -TAIL).replace(/\.$/, "");
  return text.endsWith(TIE) && Number(kept.at(-1)) % 2 === 0 ? kept : rounded;
}

function fixed(size, places) {
  return halfToEven(size.toFixed(places + TAIL), size.toFixed(places));
}

function scientific(size, digits) {
  const [mantissa, power] = size.toExponential(digits - 1).split("e");
  const [long, same] = size.toExponential(digits - 1 + TAIL).split("e");
  const kept = power === same ? halfToEven(long, mantissa) : mantissa;
  return withoutZeros(kept) + "e" + power[0] + power.slice(1).padStart(2, "0");
}

function withoutZeros(text) {
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

function withCommas(text) {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

function number(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const sign = value < 0 ? "-" : "";
  if (Number.isInteger(value) && size < WHOLE_UP_TO) return sign + withCommas(String(size));
  const power = Math.floor(Math.log10(size));
  if (size >= PLAIN_FROM && size < PLAIN_UP_TO) return sign + withCommas(withoutZeros(fixed(size, Math.max(0, digits - 1 - power))));
  return sign + (power === -4 ? withoutZeros(fixed(size, digits + 3)) : scientific(size, digits));
}

function bestScale(size, scales) {
  const fitting = scales.filter(([, step]) => size >= step);
  if (fitting.length === 0) return scales.find(([, step]) => step === 1);
  return fitting[0][0].startsWith("T") && size < GIGA_UP_TO ? fitting[1] : fitting[0];
}

// `value`, in base units of `unit`, as a reader wants it; `scale` names another unit to use, such as GiB.
function write(value, unit, digits = 4, scale = null) {
  if (scale) return `${number(value / UNITS[unit].names[scale], digits)}${unit === "1" ? "" : " "}${scale}`;
  if (unit === "1") return number(value, digits);
  if (!UNITS[unit]?.scales.length) return `${number(value, digits)} ${unit}`;
  const [name, size] = bestScale(Math.abs(value), UNITS[unit].scales);
  return `${number(value / size, digits)} ${name}`;
}

// A pure number as people say it: 7B, 350M.
function count(value, digits = 4) {
  const scale = COUNT_SCALES.find(([, size]) => Math.abs(value) >= size);
  return scale ? number(value / scale[1], digits) + scale[0] : number(value, digits);
}

// An amount as it stands in a box: counts short, all else with its unit.
function spoken(value, unit, digits = 4, scale = null) {
  return unit === "1" && !scale ? count(value, digits) : write(value, unit, digits, scale);
}

// Values that stand under each other, as texts in one unit: that of the largest. What would be lost in it keeps its own.
function inOneUnit(values, unit, digits = 4, scale = null) {
  const one = scale ?? scaleOf(values, unit);
  const least = one && !scale ? PLAIN_FROM * UNITS[unit].names[one] : 0;
  return values.map((value) => write(value, unit, digits, 0 < Math.abs(value) && Math.abs(value) < least ? scale : one));
}

function scaleOf(values, unit) {
  const largest = Math.max(0, ...values.filter(Number.isFinite).map(Math.abs));
  if (unit === "1") return COUNT_SCALES.find(([, size]) => largest >= size)?.[0] ?? null;
  return UNITS[unit]?.scales.length ? bestScale(largest, UNITS[unit].scales)[0] : null;
}

// The value of a typed text in base units of `unit`, or NaN.
function read(text, unit) {
  const match = /^\s*([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*$/.exec(text);
  if (!match) return NaN;
  const name = (match[2] ?? "").replace(/\s*\/\s*|\s+per\s+/g, "/");
  const names = UNITS[unit]?.names ?? {};
  if (name && !Object.hasOwn(names, name)) return NaN;
  return Number(match[1].replace(/[,_]/g, "")) * (name ? names[name] : 1);
}
