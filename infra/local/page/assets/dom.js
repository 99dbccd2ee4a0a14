/** Builds elements. Text is always text: nothing that a server or a user says becomes markup. */

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; an attribute that is null or false is left out. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(text, click, attributes = {}) {
  return element("button", { type: "button", click, ...attributes }, text);
}

/** JSON to read: a block that the keyboard can scroll. */
export function json(value) {
  return element("pre", { tabindex: "0" }, typeof value === "string" ? value : JSON.stringify(value, null, 2));
}
