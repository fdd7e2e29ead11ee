// One function for each kind of view: a value in, a node out.

import { here, post } from "./api.js";
import { colour, language } from "./colour.js";
import { enterSends, inOwnTime, make, safe, say, size, toast } from "./dom.js";

const MARKS = { waiting: "☐", running: "◐", done: "☑", failed: "✕", denied: "✕", stopped: "✕", unknown: "?", pending: "☐", skipped: "–" };
const CARDS = { open: "☐", approved: "☑", answered: "☑", denied: "✕", expired: "✕", cancelled: "✕" };
const WORDED = ["failed", "denied", "stopped", "unknown"]; // states of a line that are said in words too

const scope = ({ rule, here }) => rule && rule === here ? say("both_cover", { rule })
  : [here && say("here_covers", { rule: here }), rule && say("always_covers", { rule })].filter(Boolean).join("\n");

const DRAW = {
  said: (view) => make("div", { class: "said", dir: "auto" }, make("bdi", { class: "hide" }, `${view.name}: `), view.text,
    view.files?.length && make("div", { class: "sent" }, ...view.files.map(file))),
  reply: (view, html) => make("article", { class: "reply" }, code(safe(html)), view.note && make("p", { class: "note" }, view.note)),
  notice: (view, html) => make("div", { class: `notice ${view.tone}` }, safe(html), ...buttons(view, false)),
  report: (view, html) => make("article", { class: "report", "aria-label": say("report") },
    view.title && make("h2", { dir: "auto" }, view.title), code(safe(html)), view.note && make("p", { class: "note" }, view.note)),
  activity: (view, html) => make("div", { class: "activity" }, html && safe(html),
    view.lines.length && make("ul", { "aria-label": say("what_was_done") }, ...view.lines.map(line)),
    view.note && make("p", { class: "note" }, view.note), ...buttons(view, false)),
  approval: (view, html, { calls, decided }) => decided ? settled(view, calls, decided)
    : card(view, "approval", say(view.proposals.length === 1 ? "ask_one" : "ask_many", { n: view.proposals.length }),
      view.asker && make("p", { class: "faint" }, say("asked_by", { name: view.asker })), ...view.proposals.map((one, index) => proposal(one, index, calls[index])),
      scope(view) && make("p", { class: "faint rule" }, scope(view)), ...buttons(view, true)),
  choice: (view, html) => card(view, "choice", "", facts(safe(html)), ...buttons(view, false), view.state === "open" && view.token ? fold("own", say("something_else"), form(view)) : null),
  form: (view, html) => card(view, "form", "", safe(html), view.state === "open" ? form(view) : null),
  plan,
  media: (view, html) => make("figure", { class: "media" }, ...view.files.map(file), html && make("figcaption", {}, safe(html))),
};

export function draw({ view, html, calls, decided, moments }) {
  if (DRAW[view.kind]) return inOwnTime(DRAW[view.kind](view, html, { calls, decided }), moments ?? []);
  return make("div", { class: "notice" }, say("too_old"));
}

function mark(state, label) { // without a label where the words beside it say it
  const named = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return make("span", { class: "mark-of", ...named }, MARKS[state] ?? "☐");
}

function line(one) {
  const word = say(`line_${one.state}`), worded = WORDED.includes(one.state);
  const said = [mark(one.state, worded ? "" : word), make("span", {}, make("b", {}, one.tool), " ", make("bdi", {}, one.summary), worded && ` (${word})`)];
  const item = make("li", { class: one.state, "data-call": one.call_id });
  if (!one.output) item.append(make("div", { class: "line" }, ...said));
  else item.append(make("details", { "data-keep": `out-${one.call_id}`, class: "line-out" }, make("summary", { class: "line" }, ...said),
    make("pre", { tabindex: "0", role: "group", "aria-label": say("output") }, one.output)));
  return item;
}

function fold(keep, label, content) {
  return make("details", { "data-keep": keep }, make("summary", {}, label), content);
}

function proposal(one, index, call) {
  return make("div", { class: "proposal" },
    make("p", { class: "what" }, make("b", {}, call.title), make("span", { class: `risk ${one.risk}` }, say(`risk_${one.risk}`))),
    one.reason && make("p", { class: "why" }, one.reason), ...described(call),
    call.notes && make("p", { class: "faint" }, call.notes),
    call.whole && fold(`detail-${index}`, say("details"), make("pre", { tabindex: "0", dir: "ltr" }, call.whole)));
}

function described(call) { // facts, then what would run or change, then what in it deceives
  return [
    call.facts.length && make("dl", { class: "facts" }, ...call.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, make("code", { dir: "ltr" }, value))])),
    call.body && make("pre", { tabindex: "0", role: "group", "aria-label": say("arguments"), dir: "ltr", class: call.kind }, ...(call.kind === "diff" ? diffed(call.body) : [call.body])),
    ...call.warnings.map((words) => make("p", { class: "deceit" }, `⚠ ${words}`)),
  ];
}

function diffed(body) {
  const kind = (line) => /^(---|\+\+\+|@@)/.test(line) ? "at" : line.startsWith("+") ? "added" : line.startsWith("-") ? "gone" : "";
  return body.split("\n").map((line, at) => make("span", { class: kind(line) }, at ? `\n${line}` : line));
}

function settled(view, calls, { what, outcome }) { // one line; what it was about is folded
  return make("section", { class: `card approval ${view.state}`, "aria-label": what },
    make("details", { "data-keep": "decided" }, make("summary", {}, make("b", {}, what), " ", make("span", { class: "outcome" }, outcome)),
      view.asker && make("p", { class: "faint" }, say("asked_by", { name: view.asker })),
      ...view.proposals.map((one, index) => proposal(one, index, calls[index]))));
}

const named = ([name, value]) => name?.nodeName === "STRONG" && /^\s?[:：]/.test(value?.data ?? "");

function facts(node) { // lines that begin with a bold name and a colon, in two columns
  for (const block of node.querySelectorAll(":scope > p")) {
    const lines = [[]], parts = [];
    for (const one of [...block.childNodes])
      if (one.nodeName === "BR") lines.push([]);
      else if (lines.at(-1).length || one.nodeType !== Node.TEXT_NODE || one.data.trim()) lines.at(-1).push(one);
    if (!lines.some(named)) continue;
    for (const line of lines) {
      const kind = named(line) ? "dl" : "p", last = parts.at(-1)?.matches(kind);
      if (!last) parts.push(make(kind, kind === "dl" ? { class: "facts", dir: "auto" } : { dir: "auto" }));
      const into = parts.at(-1), [name, ...value] = line;
      if (kind === "p") { into.append(...(last ? [make("br")] : []), ...line); continue; }
      value[0].data = value[0].data.replace(/^\s?[:：]\s*/, "");
      into.append(make("dt", {}, ...name.childNodes), make("dd", {}, ...value));
    }
    block.replaceWith(...parts);
  }
  return node;
}

function code(node) { // a button that copies each block
  for (const block of node.querySelectorAll("pre")) {
    const button = make("button", { type: "button", class: "copy" }, say("copy"));
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.textContent);
        button.textContent = say("copied");
      } catch { getSelection().selectAllChildren(block); }
    });
    const frame = make("div", { class: "code", "data-language": language(block) });
    colour(block);
    block.replaceWith(frame);
    frame.append(block, button);
  }
  return node;
}

function card(view, kind, title, ...content) {
  const ended = { approved: "approved", denied: "denied", answered: "answered", expired: "expired", cancelled: "cancelled" }[view.state];
  const outcome = view.outcome || (ended && view.question ? say(ended) : ""); // a list of jobs asks nothing
  return make("section", { class: `card ${kind} ${view.state}${view.question === "" ? " listed" : ""}`, "aria-label": title || say("question") },
    title && make("h2", {}, make("span", { class: "mark-of", "aria-hidden": "true" }, CARDS[view.state] ?? "☐"), " ", title),
    ...content, outcome && make("p", { class: "outcome" }, outcome));
}

function plan(view) {
  const over = view.steps.filter((one) => one.state === "done").length;
  const counted = say("progress", { done: over, all: view.steps.length });
  const step = (one, at) => make("li", { class: one.state }, mark(one.state, say(`step_${one.state}`)),
    make("span", { dir: "auto" }, `${at + 1}. ${one.text}`, one.note && make("small", { dir: "auto" }, one.note)));
  return make("section", { class: `card plan ${view.state}`, "aria-label": say("plan") },
    make("div", { class: "head" }, make("h2", { dir: "auto" }, view.title || say(view.state === "open" ? "plan_open" : "plan")), make("span", { class: "faint" }, counted)),
    make("progress", { value: over, max: Math.max(1, view.steps.length), "aria-label": counted }),
    make("ol", {}, ...view.steps.map(step)), ...buttons(view, view.state === "open"), view.outcome && make("p", { class: "outcome" }, view.outcome));
}

const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
function file(one) {
  const parts = one.ref.split("/"), below = parts.every((part) => part && part !== "." && part !== "..");
  const href = below ? "/api" + here() + "/files/" + parts.map(encodeURIComponent).join("/") : null;
  if (PICTURES.includes(one.mime))
    return make("a", { class: "picture", href, target: "_blank", rel: "noopener" }, make("img", { src: href, alt: one.name, loading: "lazy" }));
  return make("a", { class: "download", href, download: one.name }, make("bdi", { class: "name" }, one.name), make("small", {}, size(one.size)), make("span", { class: "get" }, say("download")));
}

function buttons(view, withReason) {
  const open = view.state === "open" || ["plan", "notice", "activity"].includes(view.kind);
  if (!open || !view.buttons.length) return [];
  const reason = make("textarea", { class: "field", rows: 1, "data-keep": "reason", "aria-label": say("reason") });
  const row = make("div", { class: "buttons" }), stays = view.kind === "choice" && !view.question; // it asks nothing: its buttons can be pressed again
  for (const one of view.buttons)
    row.append(one.url ? make("a", { class: "button", href: one.url, target: "_blank", rel: "noopener noreferrer", "data-keep": one.url, dir: "auto" }, one.label) : make("button", { type: "button", class: one.style, "data-keep": one.token, dir: "auto", onclick: (event) => answer(event.target, one.token, reason.value, stays) }, one.label));
  return withReason ? [make("div", { class: "reason" }, fold("why", say("add_reason"), reason)), row] : [row];
}

function form(view) {
  const field = make("textarea", { class: "field", rows: 2, "data-keep": "field", "aria-label": say("your_answer") });
  const submit = (event) => { event.preventDefault(); answer(event.target, view.token, field.value); };
  field.addEventListener("keydown", (event) => enterSends(event, () => node.requestSubmit()));
  const node = make("form", { onsubmit: submit }, field, make("div", { class: "buttons" }, make("button", { class: "good", "data-keep": "submit" }, say("answer"))));
  return node;
}

async function answer(node, token, words, stays = false) {
  const card = node.closest(".card, .notice"), controls = card.querySelectorAll("button, textarea");
  if (card.contains(document.activeElement)) card.dataset.focused = document.activeElement.dataset.keep ?? "yes"; // disabled, it loses the focus
  controls.forEach((one) => (one.disabled = true));
  try {
    await post("/answers", { token, text: words.trim() });
  } catch (error) {
    stays = true;
    toast(error.message);
  }
  if (!stays) return;
  controls.forEach((one) => (one.disabled = false));
  node.focus({ preventScroll: true });
}

export function replace(old, node, fallback) { // keep what was typed, what was folded out, and the focus
  const marked = (root) => Array.from(root.querySelectorAll("[data-keep]"));
  const fresh = new Map(marked(node).map((one) => [one.dataset.keep, one]));
  const gone = document.activeElement === document.body && old.dataset.focused;
  const focus = gone || document.activeElement?.dataset?.keep;
  for (const one of marked(old)) {
    const twin = fresh.get(one.dataset.keep);
    if (twin && one.open) twin.open = true;
    if (twin && one.value) twin.value = one.value;
  }
  const had = gone || old.contains(document.activeElement);
  old.replaceWith(node);
  if (had) (fresh.get(focus) || node.querySelector("summary, button:not(:disabled)") || fallback).focus({ preventScroll: true });
}
