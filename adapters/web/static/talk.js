// One conversation: its history, its live events, what waits.

import { at, call, edit, here, isOwn, withdraw } from "./api.js";
import { $, banner, enterSends, exposed, make, retitle, safe, say, toast } from "./dom.js";
import { addActions, fold, foldOf, forget, markLast } from "./turns.js";
import { draw, replace } from "./views.js";

const log = $("log"), scroll = $("scroll"), text = $("text");
const hooks = { standing: () => {} };

const SILENT = 40000, LOOKS = 5000; // a stream gives a sign of life every 15 s
const PAGE = 100, MOST = 800; // views that are asked for at once
let source = null, heard = 0, lastRev = 0, oldest = 0, step = PAGE, retry = 1000, timer = 0, state = "idle";
const PRINTED = 2000; // characters of what runs that are seen

let items = new Map(), growing = new Map(), prints = new Map(), sent = [], waiting = [], editing = "", drawn = "";

export function onStanding(act) { hooks.standing = act; }

export async function open(id) {
  at.chat = id;
  close();
  items.clear(); growing.clear(); prints.clear(); forget();
  sent = []; waiting = []; lastRev = oldest = 0; step = PAGE; editing = "";
  log.replaceChildren();
  $("empty").hidden = true; // until we know
  drawPending();
  await load();
  toEnd();
}

export async function load() {
  const asked = at.chat, known = lastRev;
  log.setAttribute("aria-busy", "true"); // history is not read out
  try {
    const page = await call(`${here()}?limit=${PAGE}`);
    if (asked !== at.chat) return;
    keepEnd(() => { page.views.forEach(show); stand(page); });
    if (known) lastRev = known; // what lies between, the stream brings
    else tellOldest(page);
    connect();
  } catch (error) {
    if (asked === at.chat) lost(error.message);
  } finally {
    log.removeAttribute("aria-busy");
  }
}

function tellOldest(page) {
  oldest = page.views[0]?.position ?? oldest;
  $("earlier").hidden = !page.more;
}

export async function earlier() { // an older page; what is there stays where it is
  const asked = at.chat;
  step = Math.min(step * 2, MOST);
  try {
    const page = await call(`${here()}?limit=${step}&before=${oldest}`);
    if (asked !== at.chat) return;
    const height = scroll.scrollHeight, top = scroll.scrollTop, known = lastRev;
    log.setAttribute("aria-busy", "true");
    page.views.forEach(show);
    lastRev = known; // the stream goes on from there
    tellOldest(page);
    scroll.scrollTop = top + scroll.scrollHeight - height;
  } catch (error) {
    if (asked === at.chat) toast(error.message);
  } finally {
    log.removeAttribute("aria-busy");
  }
}

export async function jump(key) { // to a view that a search found
  const asked = at.chat;
  for (let before = -1; !items.has(key) && items.size > before && asked === at.chat; ) { before = items.size; await earlier(); }
  const node = asked === at.chat && items.get(key)?.node;
  if (!node) return;
  node.closest("details")?.setAttribute("open", "");
  node.scrollIntoView({ block: "center" });
  follows = nearEnd();
  node.classList.add("found");
  node.addEventListener("animationend", () => node.classList.remove("found"), { once: true });
}

export const connected = () => source !== null;

export function close() {
  clearTimeout(timer);
  if (source) source.close();
  source = null;
  document.body.dataset.live = "";
}

function connect() {
  close();
  source = new EventSource(`/api${here()}/events?after=${lastRev}`);
  const on = (name, act) => source.addEventListener(name, (event) => { heard = Date.now(); keepEnd(() => act(JSON.parse(event.data))); });
  heard = Date.now();
  source.onopen = () => { heard = Date.now(); retry = 1000; banner(""); document.body.dataset.live = "on"; };
  source.onerror = () => {
    document.body.dataset.live = "";
    if (source.readyState === EventSource.CLOSED) lost("");
    else banner(say("lost")); // the browser comes back by itself, with the id of its last event
  };
  on("view", (shown) => { show(shown); freed = true; hooks.standing(false); }); // a first one may come behind the standing
  on("growing", grow);
  on("terminal_output", print);
  on("standing", stand);
  on("told", (told) => { if (isOwn(told.press)) { toast(told.text); freed = true; } });
  on("alive", () => {});
  on("removed", () => { toast(say("removed")); open(at.chat); }); // by another tab, or for its age
}

setInterval(() => { // a network that went away without a word breaks no stream; nor does one that slept
  if (source?.readyState === EventSource.OPEN && Date.now() - heard > SILENT) lost("");
}, LOOKS);

function release() { // a card that is still open can be pressed again
  document.querySelectorAll(":is(.card.open, .notice) :disabled").forEach((node) => (node.disabled = false));
}

function lost(words) {
  banner(words || say("lost"));
  close();
  timer = setTimeout(load, retry);
  retry = Math.min(retry * 2, 15000);
}

function stand(now) {
  const title = exposed(now.title) || say("new"), naming = $("title").querySelector("input");
  const changed = now.state !== state || (!naming && title !== $("title").textContent);
  state = log.dataset.state = now.state;
  waiting = now.waiting;
  const known = new Set(waiting.map((one) => one.message));
  sent = sent.filter((one) => !one.kept && !known.has(one.key));
  $("state").textContent = state === "idle" ? "" : say(state);
  $("state").className = state;
  $("stop").hidden = state === "idle";
  $("model").textContent = now.model || say("model");
  $("model").ariaLabel = $("model").title = now.model ? `${say("model")}: ${now.model}` : say("model");
  if (!naming) $("title").textContent = title;
  retitle({ title });
  if (state === "idle") { growing.forEach((node) => node.remove()); growing.clear(); prints.clear(); }
  drawPending();
  hooks.standing(changed);
}

// ---- what was sent and what waits

export function sending(key, words, names) {
  sent.push({ key, words, names, kept: false });
  drawPending();
  toEnd();
}

export function arrived(key, well) { // kept: the next standing says where it is
  for (const one of sent) if (one.key === key) one.kept = true;
  if (!well) { sent = sent.filter((one) => one.key !== key); drawPending(); }
}

function drawPending() {
  if (editing && $("pending").querySelector("textarea") && waiting.some((one) => one.message === editing)) return;
  editing = "";
  const now = JSON.stringify([waiting, sent]);
  if (now !== drawn) // a button that is drawn anew while it is pressed is not pressed
    $("pending").replaceChildren(...waiting.map(drawWaiting), ...sent.map((one) => bubble([one.words, ...one.names].filter(Boolean).join("\n"), say("sending"))));
  drawn = now;
  $("empty").hidden = items.size > 0 || growing.size > 0 || $("pending").childElementCount > 0;
}

function bubble(words, label, ...controls) {
  return make("div", { class: "later" }, make("div", { class: "said", dir: "auto" }, words), make("div", { class: "below" }, make("small", {}, label), ...controls));
}

function drawWaiting(one) {
  const words = [one.text, ...one.files].filter(Boolean).join("\n");
  if (!one.message) return bubble(words, say("waits"));
  const node = bubble(words, say("waits"),
    make("button", { type: "button", class: "link", "data-edit": one.message, onclick: () => change(node, one) }, say("edit")),
    make("button", { type: "button", class: "link", onclick: () => act(() => withdraw(one.message)) }, say("withdraw")));
  return node;
}

async function act(doing) {
  try {
    await doing();
  } catch (error) {
    toast(error.message);
  }
  if (!document.activeElement.matches("input, textarea")) text.focus(); // they may write elsewhere by now
}

function change(node, one) {
  editing = one.message;
  drawn = "";
  const field = make("textarea", { class: "field", rows: 2, "aria-label": say("edit_message") });
  field.value = one.text;
  const end = () => { editing = ""; drawPending(); text.focus(); };
  const save = () => { const words = field.value; end(); if (words.trim() && words !== one.text) act(() => edit(one.message, words)); };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); end(); }
    else enterSends(event, save);
  });
  node.replaceChildren(field, make("div", { class: "below" },
    make("button", { type: "button", class: "link", onclick: save }, say("save")),
    make("button", { type: "button", class: "link", onclick: end }, say("cancel"))));
  field.focus();
}

// ---- views

function show(shown) {
  const key = JSON.stringify([shown.turn, shown.name]), old = items.get(key), view = shown.view;
  lastRev = Math.max(lastRev, shown.rev);
  if (old && old.rev >= shown.rev) return;
  if (view.kind === "said") {
    const first = sent.findIndex((one) => view.text.startsWith(one.words.trim()));
    if (first >= 0) sent.splice(first, 1);
  }
  if (view.kind === "reply") {
    if (view.state === "streaming") return void grow({ turn: shown.turn, text: view.text, more: false });
    growing.get(shown.turn)?.remove();
    growing.delete(shown.turn);
  }
  const node = addActions(draw(shown), shown);
  node.dataset.position = shown.position;
  node.dataset.turn = shown.turn;
  node.querySelectorAll("li[data-call]").forEach(reprint);
  if (old) replace(old.node, node, text);
  else place(node, shown.position, foldOf(shown.turn) ?? log);
  if (view.fate) fold(log, shown.turn, view, node);
  marks = true;
  settle();
  node.querySelectorAll("img").forEach((one) => one.addEventListener("load", settle));
  items.set(key, { rev: shown.rev, node });
  drawPending();
}

const comesAfter = (one, position) => one.classList.contains("live") || Number(one.dataset.position) > position;
function place(node, position, within) { // what is there is in order, with what still grows at its end
  let before = within.lastElementChild;
  while (before?.classList.contains("live")) before = before.previousElementSibling;
  if (before && !comesAfter(before, position)) return before.after(node);
  const all = [...within.children];
  let low = 0, high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comesAfter(all[middle], position)) high = middle;
    else low = middle + 1;
  }
  within.insertBefore(node, all[low] ?? null);
}

function grow(event) {
  let node = growing.get(event.turn);
  if (!event.text && !event.more) { // its words went into the activity
    node?.remove();
    growing.delete(event.turn);
    return;
  }
  if (!node) {
    node = make("div", { class: "reply growing live", "aria-live": "off" }, make("div", { class: "finished" }), make("span", {}));
    log.append(node);
    growing.set(event.turn, node);
  }
  const [finished, rest] = node.children;
  if (!event.more) { node.words = ""; node.cut = 0; finished.replaceChildren(); }
  node.words += event.text;
  if (event.html) { // blocks that nothing can change any more
    finished.append(safe(event.html));
    node.cut = event.cut;
  }
  if (event.more && !event.html && rest.firstChild) rest.firstChild.appendData(event.text);
  else rest.textContent = node.words.slice(node.cut);
  $("empty").hidden = true;
}

function print(event) { // what a command writes while it runs; at its end its line holds it
  prints.set(event.call_id, ((prints.get(event.call_id) ?? "") + event.text).slice(-PRINTED));
  log.querySelectorAll(`li[data-call="${CSS.escape(event.call_id)}"]`).forEach(reprint);
}

function reprint(item) {
  const words = prints.get(item.dataset.call);
  if (!words) return;
  if (!item.classList.contains("running")) return void (item.classList.contains("waiting") || prints.delete(item.dataset.call));
  let block = item.querySelector(".live-out");
  if (!block) item.append(block = make("pre", { class: "live-out", tabindex: "0", "aria-label": say("output") }));
  block.textContent = words;
  block.scrollTop = block.scrollHeight;
}

// ---- staying at the end

let follows = true, stood = 0; // the person looks at the newest; where we put them
let settling = 0, marks = false, freed = false; // which turn is the last one is to be looked at; what was pressed can be pressed again
const nearEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 90;
export function toEnd() {
  scroll.scrollTop = $("empty").hidden ? scroll.scrollHeight : 0;
  stood = scroll.scrollTop;
  follows = true;
  $("down").hidden = true;
}
function keepEnd(change) { change(); settle(); }
function settle() { // once a frame: to lay out a long conversation for each of many events takes the browser's whole time
  settling ||= requestAnimationFrame(() => {
    settling = 0;
    if (marks) markLast(log);
    if (freed) release();
    marks = freed = false;
    if (follows) toEnd();
    else $("down").hidden = nearEnd();
  });
}
scroll.addEventListener("scroll", () => {
  follows = (follows && scroll.scrollTop >= stood - 1) || nearEnd(); // by us, and more came since: not by the person
  $("down").hidden = follows || !$("empty").hidden;
}, { passive: true });
new ResizeObserver(() => { if (follows) toEnd(); }).observe(scroll); // a keyboard came up, the field grew
