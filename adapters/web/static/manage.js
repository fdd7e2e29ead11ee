// A conversation is named, or deleted by a second press.

import { at, call, here, post } from "./api.js";
import { $, make, newKey, say, toast } from "./dom.js";

const SURE = 5000; // milliseconds for the second press
let sure = 0, armed = ""; // the conversation that was pressed for once

export function standing() { // what nobody began has nothing to name
  $("manage").hidden = $("log").childElementCount === 0;
}

$("rename").addEventListener("click", () => {
  const title = $("title"), before = title.textContent, named = at.chat;
  const field = make("input", { class: "field", maxlength: 80, "aria-label": say("rename") });
  const end = (keep) => {
    if (!field.isConnected) return;
    const name = field.value.trim();
    title.replaceChildren(named === at.chat ? before : say("new")); // its own comes with the next standing
    if (keep && named === at.chat && name && name !== before) post("/commands", { name: "rename", arguments: name }).catch((error) => toast(error.message));
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
  if (armed !== at.chat) {
    calm();
    armed = at.chat;
    toast(say("discard_sure"));
    $("discard").classList.add("bad");
    sure = setTimeout(calm, SURE);
    return;
  }
  calm();
  const gone = at.chat;
  call(here(), { method: "DELETE" }).then(() => {
    if (gone === at.chat) location.hash = "#c=" + newKey();
  }, (error) => toast(error.status === 409 ? say("discard_busy") : error.message));
});

export function calm() {
  clearTimeout(sure);
  armed = "";
  $("discard").classList.remove("bad");
}
