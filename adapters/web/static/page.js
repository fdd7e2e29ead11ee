// The web chat. It uses the HTTP API (/api/openapi.json) and nothing else.
// Only `html` from the server, which rendered it from markdown, is put in as HTML; all else is text.
"use strict";

const MARKS = { waiting: "☐", running: "◐", done: "☑", failed: "✕", denied: "✕", stopped: "✕", unknown: "◐" };
const STATES = { idle: "", running: "Working", waiting: "Waits for you" };
const DECIDED = { approved: "Approved", denied: "Denied", answered: "Answered", expired: "Nobody answered in time", cancelled: "Cancelled" };
const RISKS = { low: "Low risk", medium: "Medium risk", high: "High risk" };
const $ = (id) => document.getElementById(id);
const log = $("log"), scroll = $("scroll"), text = $("text");

let chat = "", source = null, lastRev = 0, limit = 100, retry = 1000, timer = 0, toastTimer = 0;
let items = new Map(), growing = new Map(), sent = [], waiting = [], files = [], state = "idle";

function make(tag, attrs = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

function safe(html) {
  const node = make("div", { class: "html" });
  node.innerHTML = html;
  return node;
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function toast(words) {
  $("toast").textContent = words;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => ($("toast").textContent = ""), 7000);
}

function banner(words) {
  $("banner").hidden = !words;
  $("banner").textContent = words;
}

// ---- the API

async function call(path, body, raw = false) {
  const options = body === undefined ? {} : { method: "POST", body: raw ? body : JSON.stringify(body) };
  let response;
  try {
    response = await fetch("/api" + path, options);
  } catch {
    throw new Error("The gateway does not answer. Check that it runs; nothing was lost here.");
  }
  const data = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(data.error || `The gateway answered ${response.status}. Try again.`), { status: response.status });
  return data;
}

const here = () => "/conversations/" + encodeURIComponent(chat);

async function post(what, body) {
  const to = here() + what, once = { key: newKey(), ...body };
  try {
    return await call(to, once);
  } catch (error) {
    if (error.status) throw error;
    return call(to, once); // same key: sending it again is harmless
  }
}

// ---- the conversation

async function open(id) {
  chat = id;
  close();
  items.clear(); growing.clear();
  sent = []; waiting = []; limit = 100; lastRev = 0;
  log.replaceChildren();
  $("empty").hidden = true; // until we know
  drawPending();
  menu(false);
  if (!matchMedia("(pointer: coarse)").matches) text.focus({ preventScroll: true }); // no keyboard springs up on a phone
  await load();
  toEnd();
}

async function load() {
  const asked = chat;
  log.setAttribute("aria-busy", "true"); // history is not read out
  try {
    const page = await call(`${here()}?limit=${limit}`);
    if (asked !== chat) return;
    keepEnd(() => { page.views.forEach(show); stand(page); });
    lastRev = Math.max(lastRev, page.rev);
    $("earlier").hidden = !page.more;
    connect();
  } catch (error) {
    if (asked === chat) lost(error.message);
  } finally {
    log.removeAttribute("aria-busy");
  }
}

function close() {
  clearTimeout(timer);
  if (source) source.close();
  source = null;
}

function connect() {
  close();
  source = new EventSource(`/api${here()}/events?after=${lastRev}`);
  const on = (name, act) => source.addEventListener(name, (event) => keepEnd(() => act(JSON.parse(event.data))));
  source.onopen = () => { retry = 1000; banner(""); };
  source.onerror = () => (source.readyState === EventSource.CLOSED ? lost("") : banner("Connection lost. Trying again."));
  on("view", show);
  on("growing", grow);
  on("standing", stand);
  on("told", (told) => { toast(told.text); document.querySelectorAll(".card.open :disabled").forEach((node) => (node.disabled = false)); });
}

function lost(words) {
  banner(words || "Connection lost. Trying again.");
  close();
  timer = setTimeout(load, retry);
  retry = Math.min(retry * 2, 15000);
}

function stand(now) {
  const changed = now.state !== state;
  state = now.state;
  waiting = now.waiting;
  for (const one of waiting) settle(one.text);
  $("state").textContent = STATES[state] ?? state;
  $("state").className = state;
  $("stop").hidden = state === "idle";
  $("title").textContent = now.title || "New conversation";
  document.title = `${state === "waiting" ? "☐ " : ""}${now.title || "New conversation"} · Turnkeeper`;
  if (state === "idle") { growing.forEach((node) => node.remove()); growing.clear(); }
  drawPending();
  if (changed || waiting.length === 0) list();
}

function settle(words) {
  const at = sent.findIndex((one) => one.trim() === words.trim());
  if (at >= 0) sent.splice(at, 1);
}

function drawPending() {
  const bubble = (words, label) => make("div", { class: "said later" }, words, make("small", {}, label));
  $("pending").replaceChildren(...waiting.map((one) => bubble(one.text, "Waits for its turn")), ...sent.map((one) => bubble(one, "Sending")));
  $("empty").hidden = items.size > 0 || growing.size > 0 || $("pending").childElementCount > 0;
}

function show(shown) {
  const key = JSON.stringify([shown.turn, shown.name]), old = items.get(key);
  lastRev = Math.max(lastRev, shown.rev);
  if (old && old.rev >= shown.rev) return;
  if (shown.view.kind === "said") settle(shown.view.text);
  if (shown.view.kind === "reply") {
    if (shown.view.state === "streaming") return void grow({ turn: shown.turn, text: shown.view.text, more: false });
    growing.get(shown.turn)?.remove();
    growing.delete(shown.turn);
  }
  const node = DRAW[shown.view.kind] ? DRAW[shown.view.kind](shown.view, shown.html) : make("div", { class: "notice" }, "This page is too old to show what came. Reload it.");
  node.dataset.position = shown.position;
  if (old) replace(old.node, node);
  else place(node, shown.position);
  items.set(key, { rev: shown.rev, node });
  drawPending();
}

function place(node, position) {
  let before = log.lastElementChild;
  while (before && (before.classList.contains("live") || Number(before.dataset.position) > position)) before = before.previousElementSibling;
  if (before) before.after(node);
  else log.prepend(node);
}

function replace(old, node) { // keep what was typed, what was folded out, and the focus
  const marked = (root) => Array.from(root.querySelectorAll("[data-keep]"));
  const fresh = new Map(marked(node).map((one) => [one.dataset.keep, one]));
  const focus = document.activeElement?.dataset?.keep;
  for (const one of marked(old)) {
    const twin = fresh.get(one.dataset.keep);
    if (twin && one.open) twin.open = true;
    if (twin && one.value) twin.value = one.value;
  }
  const had = old.contains(document.activeElement);
  old.replaceWith(node);
  if (had) (fresh.get(focus) || text).focus({ preventScroll: true });
}

function grow(event) {
  let node = growing.get(event.turn);
  if (!node) {
    node = make("div", { class: "reply growing live", "aria-live": "off" });
    log.append(node);
    growing.set(event.turn, node);
  }
  if (event.more) node.append(event.text);
  else node.textContent = event.text;
  $("empty").hidden = true;
}

// ---- one function for each kind of view

const DRAW = {
  said: (view) => make("div", { class: "said" }, make("span", { class: "hide" }, `${view.name}: `), view.text),
  reply: (view, html) => make("article", { class: "reply" }, safe(html), view.note && make("p", { class: "note" }, view.note)),
  notice: (view, html) => make("div", { class: `notice ${view.tone}` }, safe(html)),
  activity: (view, html) => make("div", { class: "activity" }, html && safe(html), make("ul", { "aria-label": "What was done" }, ...view.lines.map(drawLine))),
  approval: (view) => card(view, "approval", "May I do this?",
    view.asker && make("p", { class: "faint" }, `Asked by ${view.asker}`), ...view.proposals.map(drawProposal),
    view.rule && make("p", { class: "faint" }, `“Always” covers: ${view.rule}`), ...buttons(view, true)),
  choice: (view, html) => card(view, "choice", "", safe(html), ...buttons(view, false)),
  form: (view, html) => card(view, "form", "", safe(html), view.state === "open" ? drawForm(view) : null),
};

function drawLine(line) {
  const item = make("li", { class: line.state }, make("div", { class: "line" },
    make("span", { class: "mark-of", role: "img", "aria-label": line.state }, MARKS[line.state] ?? "☐"),
    make("span", {}, make("b", {}, line.tool), " ", line.summary)));
  if (line.output) item.append(fold(`out-${line.call_id}`, "Output", make("pre", {}, line.output), "line-out"));
  return item;
}

function fold(keep, label, content, kind = "") {
  return make("details", { "data-keep": keep, class: kind }, make("summary", {}, label), content);
}

function drawProposal(one, index) {
  return make("div", { class: "proposal" },
    make("p", { class: "what" }, make("b", {}, one.tool), make("span", { class: `risk ${one.risk}` }, RISKS[one.risk] ?? one.risk)),
    one.reason && make("p", { class: "why" }, one.reason),
    make("pre", { tabindex: "0", "aria-label": "Arguments" }, one.arguments),
    one.detail && fold(`detail-${index}`, "Details", make("pre", {}, one.detail)));
}

function card(view, kind, title, ...content) {
  const outcome = view.outcome || (view.state === "open" ? "" : DECIDED[view.state]);
  return make("section", { class: `card ${kind} ${view.state}`, "aria-label": title || "A question" },
    title && view.state === "open" ? make("h2", {}, title) : "", ...content, outcome && make("p", { class: "outcome" }, outcome));
}

function buttons(view, withReason) {
  if (view.state !== "open" || !view.buttons.length) return [];
  const reason = make("textarea", { class: "field", rows: 1, "data-keep": "reason", "aria-label": "Reason" });
  const row = make("div", { class: "buttons" });
  for (const one of view.buttons)
    row.append(make("button", { type: "button", class: one.style, "data-keep": one.token, onclick: (event) => answer(event.target, one.token, reason.value) }, one.label));
  return withReason ? [make("div", { class: "reason" }, fold("why", "Add a reason", reason)), row] : [row];
}

function drawForm(view) {
  const field = make("textarea", { class: "field", rows: 2, "data-keep": "field", "aria-label": "Your answer" });
  const submit = (event) => { event.preventDefault(); answer(event.target, view.token, field.value); };
  field.addEventListener("keydown", (event) => enterSends(event, () => form.requestSubmit()));
  const form = make("form", { onsubmit: submit }, field, make("div", { class: "buttons" }, make("button", { class: "good", "data-keep": "submit" }, "Answer")));
  return form;
}

async function answer(node, token, words) {
  const controls = node.closest(".card").querySelectorAll("button, textarea");
  controls.forEach((one) => (one.disabled = true));
  try {
    await post("/answers", { token, text: words.trim() });
  } catch (error) {
    controls.forEach((one) => (one.disabled = false));
    toast(error.message);
  }
}

// ---- writing

function enterSends(event, act) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  act();
}

async function send() {
  const words = text.value, ready = files.filter((file) => file.ref), command = /^\/([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i.exec(words.trim());
  if (files.length > ready.length) return toast("A file is still on its way. Send again in a moment.");
  if (!words.trim() && !ready.length) return;
  text.value = ""; files = []; fit(); drawFiles();
  const shown = command ? null : words;
  if (shown?.trim()) sent.push(shown);
  drawPending(); toEnd();
  try {
    if (command) await post("/commands", { name: command[1], arguments: command[2] ?? "" });
    else await post("/messages", { text: words, attachments: ready.map((file) => file.ref) });
  } catch (error) {
    if (shown !== null) settle(shown);
    drawPending();
    text.value = text.value || words; files = [...ready, ...files]; fit(); drawFiles();
    toast(error.message);
  }
}

async function attach(chosen) {
  for (const blob of chosen) {
    const file = { name: blob.name, ref: "" };
    files.push(file); drawFiles();
    try {
      file.ref = (await call("/uploads?name=" + encodeURIComponent(blob.name), blob, true)).ref;
    } catch (error) {
      files = files.filter((one) => one !== file);
      toast(`${blob.name}: ${error.message}`);
    }
    drawFiles();
  }
}

function drawFiles() {
  const drop = (file) => { files = files.filter((one) => one !== file); drawFiles(); };
  $("files").replaceChildren(...files.map((file) => make("li", {}, make("button", { type: "button", "aria-label": `Remove ${file.name}`, onclick: () => drop(file) }, file.name + (file.ref ? " ✕" : " …")))));
}

function fit() {
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

// ---- the frame

const nearEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 90;
const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; };
function keepEnd(act) { const stay = nearEnd(); act(); if (stay) toEnd(); $("down").hidden = nearEnd(); }

function menu(on) {
  document.body.classList.toggle("menu", on);
  $("menu").setAttribute("aria-expanded", String(on));
  $("shade").hidden = !on;
}

function when(seconds) {
  const date = new Date(seconds * 1000), today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString([], today ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
}

async function list() {
  const found = await call("/conversations").catch(() => null);
  if (!found) return;
  $("person").textContent = `Signed in as ${found.person}`;
  $("list").replaceChildren(...found.conversations.map((one) => make("li", {}, make("a", { href: `#${one.conversation}`, "aria-current": one.conversation === chat && "page" },
    one.state === "idle" ? null : make("i", { class: `dot ${one.state}`, role: "img", "aria-label": STATES[one.state] }),
    make("span", {}, one.title || "New conversation"), make("time", {}, when(one.at))))));
}

function follow() {
  const id = location.hash.slice(1);
  if (!/^[\w-]{1,64}$/.test(id)) return location.replace("#" + newKey());
  if (id !== chat) open(id);
}

$("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
text.addEventListener("keydown", (event) => enterSends(event, send));
text.addEventListener("input", fit);
text.addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); attach([...event.clipboardData.files]); } });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) { event.preventDefault(); attach([...event.dataTransfer.files]); } });
$("attach").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", (event) => { attach([...event.target.files]); event.target.value = ""; });
$("stop").addEventListener("click", () => post("/stop", {}).catch((error) => toast(error.message)));
$("new").addEventListener("click", () => { location.hash = newKey(); });
$("menu").addEventListener("click", () => menu(!document.body.classList.contains("menu")));
$("shade").addEventListener("click", () => menu(false));
$("earlier").addEventListener("click", async () => { limit *= 2; const height = scroll.scrollHeight; await load(); scroll.scrollTop = scroll.scrollHeight - height; });
$("down").addEventListener("click", toEnd);
scroll.addEventListener("scroll", () => ($("down").hidden = nearEnd()), { passive: true });
document.querySelectorAll("[data-say]").forEach((node) => node.addEventListener("click", () => { text.value = node.dataset.say; send(); }));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") menu(false); });
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else if (!source) load(); }); // a browser has few connections to spare
addEventListener("hashchange", follow);
addEventListener("online", () => { if (!source) load(); });
follow();
