// Keys that act on the page as a whole: A and D decide, Esc closes what is open, in the empty field
// Esc stops what runs and Up takes the last message up again. A and D can be switched off: who speaks to the computer, or
// slips, presses single keys without meaning to.

import { $, keep, kept, say } from "./dom.js";

const FIELDS = "input, textarea, select, [contenteditable]";
const typing = (event) => event.isComposing || event.target.matches?.(FIELDS) || document.querySelector("dialog[open]");

const off = () => kept("keys") === "off";

function tellKeys() {
  $("keys").textContent = say("keys", { state: say(off() ? "keys_off" : "keys_on") });
}

function decide(event) { // the card in focus, or the only one that waits
  const which = { a: "button.good", d: 'button[data-keep$=":deny"]' }[event.key.toLowerCase()];
  if (!which || off() || event.repeat || event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
  const waiting = document.querySelectorAll("#log .card.approval.open");
  const card = document.activeElement?.closest(".card.approval.open") ?? (waiting.length === 1 ? waiting[0] : null);
  const button = card?.querySelector(which);
  if (!button || button.disabled) return;
  event.preventDefault();
  card.scrollIntoView({ block: "nearest" });
  button.focus({ preventScroll: true });
  button.click();
}

function closeNote(event) { // what was folded out to write a note on a card
  const note = event.key === "Escape" && event.target.closest?.(".card.open details[open]");
  if (!note) return;
  note.open = false;
  note.querySelector("summary").focus({ preventScroll: true });
}

function stopRunning(event) { // the palette, if it is open, has taken the key
  if (event.key !== "Escape" || event.isComposing || event.repeat || $("text").value || $("log").dataset.state !== "running") return;
  event.preventDefault();
  $("stop").click();
}

function takeUp(event) {
  const text = $("text");
  if (event.key !== "ArrowUp" || event.isComposing || event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return;
  if (text.value || $("files").childElementCount || !$("palette").hidden) return;
  const edit = $("pending").querySelector(".later:last-of-type [data-edit]") ?? [...document.querySelectorAll("#log .said.last .edit_asked")].at(-1);
  if (!edit) return;
  event.preventDefault();
  edit.click();
}

tellKeys();
$("keys").addEventListener("click", () => { keep("keys", off() ? "" : "off"); tellKeys(); });
document.addEventListener("keydown", decide);
document.addEventListener("keydown", closeNote);
$("text").addEventListener("keydown", takeUp);
$("text").addEventListener("keydown", stopRunning);
