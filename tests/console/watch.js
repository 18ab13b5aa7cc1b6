// Runs in each page before its own scripts. What the tests ask of a page, and what they note about it.
"use strict";
{
  const state = { open: 0, last: performance.now(), violations: [] };
  const ask = window.fetch;
  window.fetch = async (...given) => {
    state.open += 1;
    try {
      return await ask(...given);
    } finally {
      state.open -= 1;
      state.last = performance.now();
    }
  };
  document.addEventListener("securitypolicyviolation", (event) => state.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  new MutationObserver((_, observer) => {
    if (!document.querySelector("main tbody tr")) return;
    state.firstRow = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });

  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const isShown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
  /** While a dialog is open, a person can reach nothing else. */
  const area = () => [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  const best = (found, textOf, wanted) => found.find((one) => textOf(one) === wanted) ?? found.find((one) => textOf(one).startsWith(wanted)) ?? null;

  window.watched = Object.assign(state, {
    isQuiet: (ms) => document.readyState === "complete" && state.open === 0 && performance.now() - state.last > ms,
    /** The text of the page. The note that the server does not answer is made by the style sheet. */
    text() {
      if (!document.body) return "";
      const before = getComputedStyle(document.body, "::before").content;
      return plain(`${/^"/.test(before) ? JSON.parse(before) : ""} ${document.body.innerText}`);
    },
    button(wanted, within) {
      const places = within ? [...document.querySelectorAll(within)] : [area()];
      const found = places.flatMap((place) => [...place.querySelectorAll("button, a[href], summary")]).filter(isShown);
      return best(found, (one) => plain(one.innerText), wanted) ?? found.find((one) => one.getAttribute("aria-label") === wanted) ?? null;
    },
    /** The control with a label. `isChoice`: a select, a radio button or a checkbox; else a control that takes a text. */
    control(wanted, isChoice) {
      const fits = (control) => control && (control.type === "radio" || control.type === "checkbox" || control.type === "select-one") === isChoice;
      const labels = [...area().querySelectorAll("label")].filter((label) => isShown(label) && fits(label.control));
      const named = [...area().querySelectorAll("input, select, textarea")].filter((control) => fits(control) && control.getAttribute("aria-label") === wanted);
      return best(labels, (one) => plain(one.innerText), wanted)?.control ?? named[0] ?? null;
    },
    put(control, text) {
      control.focus();
      control.value = text;
      for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
    },
    /** Elements that make the page wider than the window, or that the window cuts off. */
    tooWide() {
      const { scrollWidth, clientWidth } = document.documentElement;
      const scrolls = (element) => element !== document.body && element !== document.documentElement && getComputedStyle(element).overflowX !== "visible";
      const isInside = (element) => {
        for (let at = element.parentElement; at; at = at.parentElement) if (scrolls(at)) return true;
        return false;
      };
      const isWide = (element) => element.getBoundingClientRect().right > clientWidth + 1 && isShown(element) && !isInside(element);
      const wide = [...document.querySelectorAll("body *")].filter(isWide).slice(0, 4);
      const named = wide.map((element) => `${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""} ${plain(element.textContent).slice(0, 60)}`);
      return scrollWidth > clientWidth ? [`${scrollWidth} > ${clientWidth}`, ...named] : named;
    },
    /** What could have been made of a text that a client sent: each element that no page of the console makes. */
    foreign() {
      const found = [...document.scripts].filter((script) => script.text !== "" || new URL(script.src).origin !== location.origin);
      found.push(...document.querySelectorAll("iframe, object, embed, base, form[action], style, img:not([src='icon.svg']), svg script"));
      for (const element of document.querySelectorAll("*")) {
        if ([...element.attributes].some(({ name }) => name.startsWith("on"))) found.push(element);
      }
      for (const link of document.querySelectorAll("a[href]")) if (!/^https?:$/.test(link.protocol) || link.origin !== location.origin) found.push(link);
      return found.map((element) => element.outerHTML.slice(0, 200));
    },
    /** Texts with another direction of writing that could change the order of the text around them. */
    mixed() {
      const found = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const { data, parentElement } = walker.currentNode;
        if (/[\u202a-\u202e\u2066-\u2069\u0600-\u06ff]/.test(data) && !parentElement.closest("bdi, [dir], option, textarea, svg title")) found.push(parentElement.outerHTML.slice(0, 200));
      }
      return found;
    },
    axe(done) {
      const words = ({ id, impact, nodes }) => `${id} (${impact}): ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${plain(failureSummary).slice(0, 200)}`).join(" | ")}`;
      axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => done(violations.map(words)), (error) => done([String(error)]));
    },
    /** The numbers of the page that say which series of /metrics they are. */
    numbers: () => [...document.querySelectorAll("[data-metric]")].map((one) => [one.dataset.metric, one.dataset.value ?? null, plain(one.innerText)]),
    /** What is wrong if the view cannot be copied as a command. */
    copyable: () => (watched.button("Copy as curl") ? [] : ["there is no button that copies the request as curl"]),
    /** How the focus is shown. */
    focus() {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
      return outlineStyle !== "none" && parseFloat(outlineWidth) > 0 || boxShadow !== "none";
    },
  });
}
