// Colours for code that says what it is written in, by highlight.js (highlight/LICENSE): it and each
// language come when the first block of it does. What it finds is put in as text, never as HTML.

import { make } from "./dom.js";

const NAMES = ["python", "bash", "json", "yaml", "javascript", "typescript", "sql", "diff", "xml", "css", "go", "rust", "java", "c", "cpp",
  "csharp", "ini", "dockerfile", "php", "ruby", "kotlin", "makefile"];
const OTHERS = { py: "python", python3: "python", sh: "bash", shell: "bash", zsh: "bash", console: "bash", js: "javascript", jsx: "javascript",
  mjs: "javascript", ts: "typescript", tsx: "typescript", yml: "yaml", html: "xml", svg: "xml", toml: "ini", conf: "ini", patch: "diff", golang: "go",
  rs: "rust", h: "c", "c++": "cpp", cc: "cpp", cs: "csharp", "c#": "csharp", docker: "dockerfile", rb: "ruby", kt: "kotlin", make: "makefile", jsonc: "json" };
const LONGEST = 60000; // letters that are coloured at once
const known = new Map();

const written = (block) => block.querySelector("code[class^='language-']");
export const language = (block) => written(block)?.className.slice("language-".length) || null; // as the answer calls it

export function colour(block) {
  const node = written(block), said = language(block)?.toLowerCase();
  const name = OTHERS[said] ?? said, text = node?.textContent ?? "";
  if (!NAMES.includes(name) || text.length > LONGEST) return;
  const found = load(name); // one that is here already is used at once: a block that is drawn anew does not flicker
  if (found instanceof Promise) found.then((highlight) => paint(node, text, name, highlight), () => {});
  else paint(node, text, name, found);
}

function load(name) {
  if (!known.has(name)) {
    known.set(name, Promise.all([import("./highlight/core.js"), import(`./highlight/${name}.js`)]).then(([{ default: core }, language]) => {
      core.registerLanguage(name, language.default);
      known.set(name, core);
      return core;
    }).catch((error) => { known.delete(name); throw error; }));
  }
  return known.get(name);
}

function paint(node, text, language, core) {
  const { _emitter: found } = core.highlight(text, { language, ignoreIllegals: true });
  node.replaceChildren(...found.rootNode.children.map(nodes));
}

function nodes(one) {
  return typeof one === "string" ? one : make("span", { class: `hl-${String(one.scope).split(".")[0]}` }, ...one.children.map(nodes));
}
