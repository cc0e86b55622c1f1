// Draws the answers of jittok.play.answers: on the page of `jittok play`, in the widget of tok.explore(), in a saved page.
const HUES = [[66, 133, 244], [244, 160, 0], [15, 157, 88], [219, 68, 160], [0, 172, 193], [171, 71, 188], [175, 150, 0]];
const LONGEST = 200000;          // characters that a textarea takes without a freeze
const LARGEST = 64 << 20;        // bytes of a tokenizer file that are sent
const PAUSE = 40;                // milliseconds after a key before the text is encoded
const CHAT = '[{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]';
const FILES = /\.(gguf|model|tiktoken)$|^(tokenizer|tekken)\.json$/i;

const make = (tag, props = {}, ...inside) => {
  const made = Object.assign(document.createElement(tag), props);
  made.append(...inside);
  return made;
};
const number = n => n.toLocaleString("en");

// Grapheme clusters by the character that they begin at: a cluster is drawn once, by the token in which it begins.
function clusters(text) {
  const found = new Map();
  let at = 0;
  const parts = "Segmenter" in Intl ? [...new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)].map(s => s.segment) : [...text];
  for (const part of parts) { found.set(at, part); at += [...part].length; }
  return found;
}

function inner(chip, token, begins) {
  const [, start, stop, , bytes] = token;
  let drawn = false;
  for (let k = start; k < stop; k++) {
    const cluster = begins.get(k);
    if (cluster === undefined || begins.taken.has(k)) continue;
    begins.taken.add(k);
    drawn = true;
    if (cluster === "\n" || cluster === "\r\n") chip.append(make("i", { ariaHidden: "true", textContent: "⏎" }), "\n");
    else if (cluster === " ") chip.append(make("i", { ariaHidden: "true", textContent: "·" }));
    else if (cluster === "\t") chip.append(make("i", { ariaHidden: "true", textContent: "⇥" }), "\t");
    else chip.append(cluster);
  }
  if (!drawn) {
    const unknown = /unknown/.test(token[5]);
    chip.append(make("i", { ariaHidden: "true", textContent: unknown ? "∅" : bytes.replaceAll(" ", "") || "∅" }));
    chip.classList.add("part");
  }
}

// A list of tokens with one tab stop. others: the token ends of other vocabularies. say, look: called with the chosen one.
function draw(box, found, text, others, say, look) {
  const last = found.tokens.at(-1)?.[2] ?? 0, points = [...text.slice(0, 2 * last)].slice(0, last);   // what is drawn, not all of the text
  const begins = clusters(points.join(""));
  begins.taken = new Set();
  const rows = document.createDocumentFragment(), injected = found.injections ?? [];
  found.tokens.forEach((token, k) => {
    const [id, start, stop, hue, , attributes, message, learned] = token;
    const chip = make("span");
    chip.setAttribute("role", "option");
    chip.dataset.k = k;
    chip.style.background = `rgb(${HUES[hue].join(" ")} / .3)`;
    inner(chip, token, begins);
    const classes = {
      special: /control|unknown|user/.test(attributes), other: others.some(ends => !ends.has(stop)), template: message === -1,
      learned, injection: injected.some(([a, b]) => start < b && stop > a),
    };
    for (const [name, on] of Object.entries(classes)) if (on) chip.classList.add(name);
    const shown = points.slice(start, stop).join("");
    const bytes = chip.classList.contains("part") ? `, bytes ${chip.textContent}` : "";
    chip.setAttribute("aria-label", `${JSON.stringify(shown)}${bytes}, id ${id}`);
    chip.setAttribute("aria-selected", "false");
    rows.append(chip);
  });
  box.replaceChildren(rows);
  const choose = k => {
    const all = box.querySelectorAll("[role=option]");
    if (!all.length) return;
    k = Math.max(0, Math.min(all.length - 1, k));
    box.dataset.at = k;
    box.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    all[k].setAttribute("aria-selected", "true");
    all[k].scrollIntoView({ block: "nearest" });
    const [id, start, stop, , bytes, attributes, message, learned] = found.tokens[k];
    const from = message === undefined ? "" : message === -1 ? ", of the template" : message === -2 ? ", of a tool or document" : `, of message ${message + 1}`;
    say(`token ${k + 1} of ${number(found.count)}: id ${id}, bytes ${bytes || "none"}, characters ${start} to ${stop}` +
      `${attributes ? ", " + attributes : ""}${from}${learned ? ", learned" : ""}`);
    look(found.tokens[k]);
  };
  box.onkeydown = event => {
    const at = +(box.dataset.at ?? -1), to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: Infinity }[event.key];
    if (to !== undefined) { event.preventDefault(); choose(to); }
  };
  box.onclick = event => {
    const chip = event.target.closest("[role=option]");
    if (chip) choose(+chip.dataset.k);
  };
}

// A picture of a trace: HTML of jittok's own, in a frame without scripts.
function picture(part) {
  const style = "body{margin:.5rem;font:15px/1.5 system-ui,sans-serif;color-scheme:light dark;color:#1d2129;background:#fff}" +
    "@media(prefers-color-scheme:dark){body{color:#e8eaed;background:#16181c}}table{border-collapse:collapse}";
  const frame = make("iframe", { title: part.title, srcdoc: `<!doctype html><meta charset=utf-8><style>${style}</style>${part.html}` });
  frame.setAttribute("sandbox", "allow-same-origin");
  frame.onload = () => { frame.style.height = `${Math.min(480, frame.contentDocument.documentElement.scrollHeight + 8)}px`; };
  return make("div", {}, make("h2", { textContent: part.title }), frame);
}

// The whole page in an element. ask: a question as an object -> a promise of its answer. saved: what was answered, if no
// one can be asked any more.
function start(el, { names, ask, load = null, text = "", saved = false }) {
  el.classList.add("jittok");
  const area = make("textarea", { value: text, spellcheck: false, id: `text-${Math.random()}`, readOnly: saved });
  const special = make("input", { type: "checkbox", disabled: saved }), prompt = make("input", { type: "checkbox" });
  const window_ = make("input", { type: "number", min: 1, value: 131072 });
  const said = make("output"), told = make("p", { className: "soft" }), sides = make("div", { className: "sides" });
  const word = make("section", { className: "word" }), chat = make("button", { type: "button", textContent: "chat" });
  chat.setAttribute("aria-pressed", "false");
  said.setAttribute("aria-live", "polite");
  told.setAttribute("role", "status");
  const selects = [0, 1].map(k => {
    const select = make("select");
    select.setAttribute("aria-label", k ? "compare with" : "vocabulary");
    select.onchange = () => go();
    return select;
  });
  const list = () => selects.forEach((select, k) => {
    const chosen = select.value;
    select.replaceChildren(...(k ? [make("option", { value: "", textContent: "compare with …" })] : []),
      ...names.map(([name, type, size]) => make("option", { value: name, textContent: `${name} (${type}, ${number(size)})` })));
    if (chosen) select.value = chosen;
  });
  list();
  const about = make("label", { htmlFor: area.id, className: "soft", textContent: saved ? "The text" : "Type, paste or drop a text or a tokenizer file" });
  const promptLabel = make("label", { hidden: true }, prompt, " generation prompt");
  const specialLabel = make("label", {}, special, " control tokens in the text are parsed");
  el.append(make("h1", { textContent: "jittok play" }), make("div", { className: "bar" }, ...selects, specialLabel, promptLabel, ...(saved ? [] : [chat])),
    about, area, make("div", { className: "bar" }, make("label", {}, "context window ", window_), told), make("div", { className: "bar" }, said), sides, word);

  let serial = 0, latest = { text: 0, word: 0 }, timer, long = null, texts = { text, chat: CHAT };
  const say = line => { said.textContent = line; };
  const current = () => long ?? area.value;

  const look = (name, shown, token) => {
    const mine = latest.word = ++serial;
    ask({ kind: "word", vocabulary: name, text: shown, start: token[1], stop: token[2], number: mine }).then(found => {
      if (mine !== latest.word) return;
      word.replaceChildren();
      if (found.error) return void word.append(make("p", { className: "wrong", textContent: found.error }));
      const note = found.alone ? " (alone; in the text its tokens are others)" : "";
      word.append(make("h2", { textContent: `How ${JSON.stringify(found.word)} came to be in ${name}${note}` }), ...found.parts.map(picture));
      if (!found.parts.length) word.append(make("p", { className: "soft", textContent: "It is one token: nothing had to be merged or searched." }));
      el.dataset.word = found.word;
    });
  };

  const side = (name, found, shown, others) => {
    const box = make("div", { className: "tokens", tabIndex: 0 }), section = make("section", {}, make("h2", { textContent: name }));
    sides.append(section);
    if (found.error) return void section.append(make("p", { className: "wrong", textContent: found.error }));
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", `tokens of ${name}`);
    const per = found.count ? (found.bytes / found.count).toFixed(2) : "0", share = 100 * found.count / (+window_.value || 1);
    section.append(make("p", {
      className: "soft", textContent: `${number(found.count)} tokens, ${number(found.characters)} characters, ${number(found.bytes)} bytes, ` +
        `${per} bytes a token, ${share < 0.1 ? share.toPrecision(1) : share.toFixed(1)} % of the window`,
    }));
    if (found.injections?.length) section.append(make("p", { className: "wrong", textContent: `kept as text: ${found.injections.map(i => i[2]).join(" ")}` }));
    section.append(box);
    draw(box, found, shown, others, say, token => look(name, shown, token));
    if (found.count > found.tokens.length) section.append(make("p", { className: "soft", textContent: `and ${number(found.count - found.tokens.length)} tokens more` }));
  };

  const go = async () => {
    const mine = latest.text = ++serial, wanted = [...new Set(selects.map(select => select.value).filter(Boolean))], shown = current();
    const talk = chat.getAttribute("aria-pressed") === "true";
    const found = talk
      ? Object.fromEntries(await Promise.all(wanted.map(async name => [name, await ask({ kind: "chat", vocabulary: name, messages: shown, prompt: prompt.checked, number: ++serial })])))
      : await ask({ kind: "encode", text: shown, vocabularies: wanted, special: special.checked, number: mine });
    if (mine !== latest.text) return;                       // a later text was typed
    sides.replaceChildren();
    word.replaceChildren();
    if (found.error) { told.textContent = found.error; return; }
    for (const name of wanted) {
      const others = talk ? [] : wanted.filter(other => other !== name).map(other => new Set(found[other].tokens.map(token => token[2])));
      side(name, found[name], talk ? found[name].text ?? "" : shown, others);
    }
    el.dataset.drawn = mine;
  };

  const take = value => {                                   // a text of any length
    long = [...value.slice(0, LONGEST + 1)].length > LONGEST || value.length > LONGEST ? value : null;
    area.value = long === null ? value : "";
    area.placeholder = long === null ? "" : `${(new Blob([value]).size / 1e6).toFixed(1)} MB of text; typing replaces it`;
    go();
  };
  area.oninput = () => { long = null; clearTimeout(timer); timer = setTimeout(go, PAUSE); };
  area.onpaste = event => {
    const value = event.clipboardData.getData("text/plain");
    if (value.length > LONGEST) { event.preventDefault(); take(value); }
  };
  area.ondragover = event => event.preventDefault();
  area.ondrop = async event => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    if (!load || !FILES.test(file.name)) return take(await file.text());
    told.textContent = `reading ${file.name} …`;
    const found = await load(file.name, file.slice(0, LARGEST));
    told.textContent = found.error ?? `${found.name} is here`;
    if (found.error) return;
    names = found.names;
    list();
    selects[0].value = found.name;
    go();
  };
  chat.onclick = () => {
    const on = chat.getAttribute("aria-pressed") !== "true";
    texts[on ? "text" : "chat"] = current();
    chat.setAttribute("aria-pressed", String(on));
    specialLabel.hidden = on;
    promptLabel.hidden = !on;
    about.textContent = on ? "Messages, as JSON" : "Type, paste or drop a text or a tokenizer file";
    take(texts[on ? "chat" : "text"]);
  };
  for (const input of [special, prompt, window_]) input.onchange = () => go();
  go();
}

export default {
  render({ model, el }) {                                   // anywidget
    const waiting = new Map();
    model.on("msg:custom", message => { waiting.get(message.number)?.(message.answer); waiting.delete(message.number); });
    const ask = question => new Promise(done => { waiting.set(question.number, done); model.send(question); });
    start(el, { names: model.get("names"), text: model.get("text"), ask });
  },
};

const page = document.getElementById("play"), recorded = document.getElementById("saved");
if (page && recorded) {                                     // a saved page: it answers what was asked when it was made
  const { names, text, encoded, words } = JSON.parse(recorded.textContent);
  const ask = async question => question.kind === "encode" ? Object.fromEntries(question.vocabularies.map(name => [name, encoded[name]]))
    : words[question.vocabulary]?.[`${question.start}-${question.stop}`] ?? { error: "this word was not saved: run jittok play" };
  start(page, { names, text, ask, saved: true });
} else if (page) {
  const key = new URLSearchParams(location.search).get("key"), head = { "x-key": key };
  history.replaceState(null, "", `/?key=${encodeURIComponent(key)}`);
  const post = async (path, body, more = {}) => {
    try {
      const answer = await fetch(path, { method: "POST", headers: { ...head, ...more }, body });
      return answer.ok ? await answer.json() : { error: await answer.text() };
    } catch { return { error: "jittok play does not answer: is it still running?" }; }
  };
  const names = await (await fetch("/names", { headers: head })).json();
  start(page, {
    names, text: "Hello, world! Zürich 東京 👩‍👩‍👧 <|im_end|>\n    return x",
    ask: question => post("/ask", JSON.stringify(question), { "content-type": "application/json" }),
    load: (name, content) => post(`/load?name=${encodeURIComponent(name)}`, content),
  });
}
