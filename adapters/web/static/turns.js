// What can be done about a turn that is over: copy its answer, ask again, ask in other words. What
// was taken back or replaced is folded away.

import { post } from "./api.js";
import { $, enterSends, make, say, toast } from "./dom.js";

const ICONS = {
  take: "M9 9h11v11H9zM5 15H4V4h11v1",
  again: "M20 11a8 8 0 1 0-2.3 5.7M20 4v7h-7",
  edit_asked: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
};
const FILES = /(?:\n?\[[^\]\n]+\])+$/; // what a message says of the files that came with it

function icon(name, act, words = name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return make("button", { type: "button", class: name, "data-keep": name, "aria-label": say(words), title: say(words), onclick: (event) => act(event.currentTarget) }, svg);
}

async function copy(words, body) {
  try {
    await navigator.clipboard.writeText(words);
    toast(say("copied"));
  } catch { getSelection().selectAllChildren(body); } // only pages that came safely may
}

async function again(turn, words, button) { // the server refuses what is not the last one any more
  if (button.ariaBusy === "true") return;
  button.ariaBusy = "true";
  await post("/answers", { token: `t:${turn}:retry`, text: words }).catch((error) => toast(error.message));
  button.ariaBusy = null;
}

export function addActions(node, { turn, name, view }) {
  const row = make("div", { class: "acts" });
  if (view.kind === "reply") {
    const body = node.querySelector(".html");
    row.append(icon("take", () => copy(view.text, body), "copy"), icon("again", (button) => again(turn, "", button)));
    node.append(row);
  } else if (name === "said" && !view.fate) {
    row.append(icon("take", () => copy(view.text, node), "copy"), icon("edit_asked", () => rewrite(node, turn, view.text)));
    node.append(row);
  }
  return node;
}

function rewrite(node, turn, text) {
  const files = FILES.exec(text)?.[0] ?? "", words = text.slice(0, text.length - files.length);
  const field = make("textarea", { class: "field", rows: Math.min(12, words.split("\n").length + 1), "aria-label": say("edit_asked") });
  const form = make("div", { class: "later rewrite" });
  const end = () => { form.remove(); node.hidden = false; $("text").focus({ preventScroll: true }); };
  const save = (event) => { if (field.value.trim()) again(turn, field.value, event.currentTarget).then(end); };
  field.value = words;
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); end(); } else enterSends(event, () => form.querySelector("button").click());
  });
  form.append(field, make("div", { class: "below" }, files && make("small", {}, files.trim()),
    make("button", { type: "button", class: "link", onclick: save }, say("send")),
    make("button", { type: "button", class: "link", onclick: end }, say("cancel"))));
  form.dataset.position = node.dataset.position;
  node.hidden = true; // it stays where it is: what comes meanwhile is drawn in its place
  node.after(form);
  field.focus();
}

// ---- the last turn, and those that are folded away

const folds = new Map();

export function forget() { folds.clear(); }

export function fold(log, turn, view, node) { // all of the turn goes where `view`, what was said, tells of its end
  if (folds.has(turn)) return;
  const words = view.text.replace(/\s+/g, " ").slice(0, 80);
  const box = make("details", { class: "gone", "data-position": node.dataset.position }, make("summary", {}, say(`gone_${view.fate}`, { text: words })));
  node.before(box);
  box.append(...[...log.children].filter((one) => one.dataset.turn === turn));
  folds.set(turn, box);
}

export const foldOf = (turn) => folds.get(turn);

export function markLast(log) { // only the last turn can be asked again
  let said = log.lastElementChild;
  while (said && !said.classList.contains("said")) said = said.previousElementSibling;
  const last = said?.dataset.turn;
  for (const one of log.querySelectorAll(":scope > .last")) if (one.dataset.turn !== last) one.classList.remove("last");
  if (last) log.querySelectorAll(`:scope > [data-turn="${CSS.escape(last)}"]`).forEach((one) => one.classList.add("last"));
}
