// Writing: the field, its draft, the files that go along, the palette of commands.

import { at, call, post, upload } from "./api.js";
import { $, LIMIT, enterSends, isolated, keep, kept, make, newKey, say, size, toast } from "./dom.js";
import { arrived, sending } from "./talk.js";

const text = $("text"), palette = $("palette");
let files = [], commands = null, offered = [], chosen = 0, over = 0;

// ---- the field

function fit() {
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
  text.style.overflowY = text.scrollHeight > text.clientHeight + 2 ? "auto" : "hidden";
}

export function write(words) {
  text.value = words;
  typed();
}

function typed() {
  fit();
  keep(`draft:${at.chat}`, text.value);
  offer();
}

export function restore() { // the words that were not sent in this conversation
  files.forEach((one) => one.cancel());
  files = [];
  drawFiles();
  text.value = kept(`draft:${at.chat}`);
  fit();
  offer();
}

export async function send(example) { // what stands in the field, which an example leaves there
  const words = example ?? text.value, ready = example ? [] : files.filter((one) => one.ref), command = /^\/([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i.exec(words.trim().replace(/^[/／]\S+/, (name) => name.normalize("NFKC")));
  if (!example && files.length > ready.length) return toast(files.some((one) => one.broken) ? say("not_uploaded", files.find((one) => one.broken)) : say("still_uploading"));
  if (!words.trim() && !ready.length) return;
  const key = newKey(), chat = at.chat;
  if (!example) { files = []; write(""); drawFiles(); }
  if (!command) sending(key, words, ready.map((one) => one.name));
  try {
    if (command) await post("/commands", { key, name: command[1], arguments: command[2] ?? "" });
    else await post("/messages", { key, text: words, attachments: ready.map((one) => one.ref) });
    arrived(key, true);
  } catch (error) {
    arrived(key, false);
    toast(error.message);
    if (example) return;
    if (at.chat !== chat) return keep(`draft:${chat}`, words);
    files = [...ready, ...files]; write(text.value || words); drawFiles();
  }
}

export async function give(line) { // a command; what stands in the field stays
  const [, name, words] = /^\/(\S+)\s*([\s\S]*)$/.exec(line);
  await post("/commands", { key: newKey(), name, arguments: words });
}

export function begin(line) { // a command to go on with, before the words that stand in the field
  const rest = text.value.startsWith("/") ? "" : text.value;
  write(`${line} ${rest}`);
  text.focus();
  text.setSelectionRange(line.length + 1, line.length + 1);
}

// ---- files

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

function attach(chosenFiles) {
  for (const blob of chosenFiles) {
    const name = isolated(blob.name);
    if (blob.size > LIMIT) { toast(say("too_large", { name, limit: LIMIT / 1024 / 1024 })); continue; }
    if (!blob.size) { toast(say("empty_file", { name })); continue; }
    const one = { name, size: blob.size, ref: "", part: 0, broken: false, cancel: null, begin: null, node: null, seen: PICTURE.test(blob.type) && thumbnail(blob) };
    one.begin = () => bring(one, blob);
    files.push(one);
    one.begin();
  }
  drawFiles();
  text.focus();
}

function bring(one, blob) {
  const { done, cancel } = upload(blob, (part) => { one.part = part; drawPart(one); });
  Object.assign(one, { cancel, part: 0, broken: false });
  done.then((kept) => { one.ref = kept?.ref ?? ""; one.cancel = () => {}; }, (error) => {
    if (error.status) { drop(one); return toast(`${one.name}: ${error.message}`); }
    one.broken = true; // it stays, to be tried again
    toast(say("not_uploaded", { name: one.name }));
  }).then(() => drawPart(one));
  drawPart(one);
}

function thumbnail(blob) {
  const src = URL.createObjectURL(blob);
  return make("img", { src, alt: "", onload: () => URL.revokeObjectURL(src) });
}

function drop(one) {
  one.cancel();
  files = files.filter((other) => other !== one);
  drawFiles();
}

function drawFiles() {
  $("files").replaceChildren(...files.map((one) => {
    const remove = () => { drop(one); text.focus(); };
    one.node = make("li", {}, one.seen, make("span", { class: "name" }, one.name), make("small", {}),
      make("button", { type: "button", "aria-label": say("remove", { name: one.name }), onclick: remove }, "✕"));
    drawPart(one);
    return one.node;
  }));
}

function drawPart(one) {
  if (!one.node) return;
  one.node.querySelector("small").textContent = one.broken ? "" : one.ref ? size(one.size) : say("uploading", { percent: Math.floor(one.part * 100) });
  one.node.querySelector(".anew")?.remove();
  if (one.broken) one.node.querySelector("small").replaceWith(make("small", {}), make("button", { type: "button", class: "link anew", onclick: () => { one.begin(); text.focus(); } }, say("upload_again")));
  one.node.classList.toggle("ready", Boolean(one.ref));
}

// ---- the palette

async function offer() {
  const [, word, value] = /^\/([\w-]*)(?: +([\w-]*))?$/.exec(text.value.toLowerCase()) ?? [];
  if (word === undefined) return closePalette();
  if (!commands) {
    const found = await call("/commands").catch(() => null);
    commands ??= found?.commands ?? null;
    if (commands) return offer(); // the field may hold other words by now
    return;
  }
  const near = (one) => (one.name.startsWith(word) ? 0 : one.name.includes(word) || one.help.toLowerCase().includes(word) ? 1 : 2);
  if (value === undefined) offered = commands.filter((one) => near(one) < 2).sort((a, b) => near(a) - near(b));
  else offered = (commands.find((one) => one.name === word)?.values ?? []).filter((one) => one.startsWith(value)).map((one) => ({ name: `${word} ${one}`, help: "" }));
  chosen = value === "" ? -1 : 0; // Enter sends a command without a value as well
  if (offered.length) drawPalette();
  else closePalette();
}

function drawPalette() {
  const named = (one) => `command-${one.name.replace(" ", "-")}`;
  const option = (one, index) => make("div", { role: "option", id: named(one), "aria-selected": String(index === chosen), onmousedown: (event) => { event.preventDefault(); take(one); } },
    make("b", {}, `/${one.name}`), make("span", {}, one.help));
  palette.replaceChildren(...offered.map(option));
  palette.hidden = false;
  text.setAttribute("aria-expanded", "true");
  if (chosen < 0) return text.removeAttribute("aria-activedescendant");
  text.setAttribute("aria-activedescendant", named(offered[chosen]));
  palette.children[chosen].scrollIntoView({ block: "nearest" });
}

function closePalette() {
  palette.hidden = true;
  text.setAttribute("aria-expanded", "false");
  text.removeAttribute("aria-activedescendant");
}

function take(one) {
  write(`/${one.name} `);
  closePalette();
}

function paletteKey(event) { // whether the palette took the key
  if (palette.hidden || event.isComposing) return false;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (steps[event.key]) {
    chosen = (Math.max(chosen, event.key === "ArrowUp" ? 0 : -1) + steps[event.key] + offered.length) % offered.length;
    drawPalette();
  } else if (event.key === "Tab" && !event.shiftKey) take(offered[Math.max(chosen, 0)]);
  else if (event.key === "Enter" && chosen >= 0 && text.value.toLowerCase() !== `/${offered[chosen].name}`) take(offered[chosen]);
  else if (event.key === "Escape") { closePalette(); event.stopPropagation(); }
  else return false;
  event.preventDefault();
  return true;
}

// ---- wiring

const carries = (event) => event.dataTransfer?.types.includes("Files");
$("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
text.addEventListener("keydown", (event) => { if (!paletteKey(event)) enterSends(event, send.bind(null, undefined)); });
text.addEventListener("input", typed);
text.addEventListener("blur", closePalette);
addEventListener("resize", fit);
text.addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); attach([...event.clipboardData.files]); } });
document.addEventListener("dragenter", (event) => { if (carries(event)) { over += 1; $("drop").hidden = false; } });
document.addEventListener("dragleave", (event) => { if (carries(event)) { over = Math.max(0, over - 1); $("drop").hidden = over === 0; } });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  if (!carries(event)) return;
  event.preventDefault();
  over = 0; $("drop").hidden = true;
  attach([...event.dataTransfer.files]);
});
$("attach").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", (event) => { attach([...event.target.files]); event.target.value = ""; });
