// A conversation is named, or deleted by a second press.

import { at, call, here, post } from "./api.js";
import { $, make, newKey, say, toast } from "./dom.js";

const SURE = 5000; // milliseconds for the second press
let sure = 0;

export function standing() { // what nobody began has nothing to name
  $("manage").hidden = $("log").childElementCount === 0;
}

$("rename").addEventListener("click", () => {
  const title = $("title"), before = title.textContent;
  const field = make("input", { class: "field", maxlength: 80, "aria-label": say("rename") });
  const end = (keep) => {
    if (!field.isConnected) return;
    const name = field.value.trim();
    title.replaceChildren(before);
    if (keep && name && name !== before) post("/commands", { name: "rename", arguments: name }).catch((error) => toast(error.message));
  };
  field.value = before;
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  field.addEventListener("blur", () => end(false));
  title.replaceChildren(field);
  field.select();
});

$("discard").addEventListener("click", () => {
  if (!sure) {
    toast(say("discard_sure"));
    $("discard").classList.add("bad");
    sure = setTimeout(calm, SURE);
    return;
  }
  calm();
  const gone = at.chat;
  call(here(), { method: "DELETE" }).then(() => {
    if (gone === at.chat) location.hash = "#c=" + newKey();
  }, (error) => toast(error.message));
});

function calm() {
  clearTimeout(sure);
  sure = 0;
  $("discard").classList.remove("bad");
}
