// Nodes, words and what this browser remembers.
// Only `html` from the server, which rendered it from markdown, is put in as HTML; all else is text.

const told = JSON.parse(document.querySelector("meta[name=words]").content);
export const LIMIT = told.limit;
export const LANGUAGE = told.language;

export const $ = (id) => document.getElementById(id);

export function say(key, values = {}) {
  return fill(told.words[key], values);
}

function fill(text, values) {
  return text.replace(/\{(\w+)(?::((?:[^{}]|\{\w+\})*))?\}/g, (whole, name, forms) =>
    forms ? fill(form(values[name], forms.split("|")), values) : isolated(values[name]) ?? whole);
}

const PLURALS = new Intl.PluralRules(LANGUAGE), ORDER = { one: 0, few: 1 };
function form(n, forms) { // of `step|steps`, as gateway/texts/plurals.py has it
  return forms[Math.min(ORDER[PLURALS.select(n)] ?? forms.length, forms.length - 1)];
}

const TURNS = /^[^\n\u2068]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc][^\n\u2068]*$/;
const DIRECTIONS = /\u2068[^\n\u202a-\u202e\u2066-\u2069]*\u2069|[\u202a-\u202e\u2066-\u2069]/g;
export function exposed(value) { // signs that turn text round are seen, as gateway/texts/isolation.py has it
  return value?.replace?.(DIRECTIONS, (one) => (one.length > 1 ? one : `\\u${one.charCodeAt(0).toString(16)}`)) ?? value;
}

export function isolated(value) { // a name turns round nothing beside it
  const plain = exposed(value);
  return TURNS.test(plain ?? "") ? `\u2068${plain}\u2069` : plain;
}

export function make(tag, attrs = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  if (tag === "textarea") node.dir = "auto";
  node.append(...children.filter(Boolean));
  return node;
}

export function safe(html) {
  const node = make("div", { class: "html" });
  node.innerHTML = html;
  for (const block of node.children) block.dir = block.matches("pre") ? "ltr" : "auto"; // each as its own words run
  for (const link of node.querySelectorAll("a.image")) link.dataset.word = say("image");
  for (const block of node.querySelectorAll("pre, table")) block.tabIndex = 0; // scrolls by keyboard
  return node;
}

export function inOwnTime(node, moments) { // moments that our texts name, in the reader's zone
  const texts = [], walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  if (!moments.length) return node;
  const clock = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: "medium", timeStyle: "short" });
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (let rest of texts)
    for (let hit; (hit = first(rest.data, moments)); ) {
      const words = rest.splitText(hit.where), when = new Date(hit.at * 1000);
      rest = words.splitText(hit.words.length);
      words.replaceWith(make("time", { datetime: when.toISOString(), title: hit.words }, clock.format(when)));
    }
  return node;
}

function first(text, moments) { // the longest of those that stand first
  const found = moments.map((one) => ({ ...one, where: text.indexOf(one.words) })).filter((one) => one.where >= 0);
  return found.sort((a, b) => a.where - b.where || b.words.length - a.words.length)[0];
}

export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

let timer = 0;
export function toast(words) {
  $("toast").textContent = words;
  clearTimeout(timer);
  timer = setTimeout(() => ($("toast").textContent = ""), 7000);
}

export function banner(words) {
  $("banner").hidden = !words;
  $("banner").textContent = words;
}

export function kept(name) {
  try { return localStorage.getItem(name) ?? ""; } catch { return ""; }
}

export function keep(name, value) {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch { /* a browser that keeps nothing, or is full: nothing depends on it */ }
}

export function enterSends(event, act) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  act();
}

export function size(bytes) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const step = Math.min(3, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const shown = { style: "unit", unit: units[step], unitDisplay: step ? "short" : "long", maximumFractionDigits: step > 1 ? 1 : 0 };
  return new Intl.NumberFormat(LANGUAGE, shown).format(bytes / 1000 ** step);
}

export function when(seconds) {
  const date = new Date(seconds * 1000), today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(LANGUAGE, today ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
}

const tab = { title: "", waits: 0 };

export function retitle(changed) { // the tab tells how much waits
  Object.assign(tab, changed);
  document.title = `${tab.waits ? `(${tab.waits}) ` : ""}${isolated(tab.title)} · Turnkeeper`;
}
