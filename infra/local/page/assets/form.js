/** A form for a JSON schema with flat properties: the arguments of a tool, or what an elicitation asks for. */

import { element } from "./dom.js";

let made = 0;

/**
 * `fields` to show, and `read()` for what they say now. What is left blank is left out; the server says what
 * does not fit, so that its answer can be seen.
 */
export function form(schema) {
  const required = new Set(schema?.required ?? []);
  const all = Object.entries(schema?.properties ?? {}).map(([name, member]) =>
    field(name, resolve(member, schema), required.has(name)),
  );
  return {
    fields: all.map((each) => each.element),
    read() {
      const values = all.map((each) => [each.name, each.value()]).filter(([, value]) => value !== undefined);
      return Object.fromEntries(values);
    },
  };
}

/** Follows a $ref, and takes the one kind out of "this or null". */
function resolve(member, schema) {
  if (member.$ref) {
    const target = member.$ref
      .split("/")
      .slice(1)
      .reduce((place, step) => place?.[step], schema);
    return resolve({ ...target, ...member, $ref: undefined }, schema);
  }
  const kinds = member.anyOf?.filter((kind) => kind.type !== "null");
  return kinds?.length === 1 ? resolve({ ...kinds[0], ...member, anyOf: undefined }, schema) : member;
}

function field(name, member, required) {
  const id = `field-${++made}`;
  const title = member.title ?? name;
  const hint = member.description ? element("span", { class: "hint", id: `${id}-hint` }, member.description) : null;
  const described = { "aria-describedby": hint ? `${id}-hint` : null };
  const label = () =>
    element("label", { for: id }, title, required ? "" : element("span", { class: "hint" }, " (optional)"));
  const shown = (control, value) => ({
    name,
    value,
    element: element("div", { class: "field" }, label(), hint, control),
  });

  if (member.type === "boolean") {
    const box = element("input", { type: "checkbox", id, name, checked: member.default === true, ...described });
    const row = element(
      "div",
      { class: "field" },
      element("div", { class: "choice" }, box, element("label", { for: id }, title)),
      hint,
    );
    return { name, value: () => box.checked, element: row };
  }
  if (member.type === "array" && options(member.items)) {
    const boxes = options(member.items).map(({ value, text }, index) => {
      const box = element("input", {
        type: "checkbox",
        id: `${id}-${index}`,
        name,
        value,
        checked: member.default?.includes(value),
      });
      return { box, row: element("div", { class: "choice" }, box, element("label", { for: box.id }, text)) };
    });
    const group = element("fieldset", described, element("legend", {}, title), hint, ...boxes.map((each) => each.row));
    const value = () => boxes.filter((each) => each.box.checked).map((each) => each.box.value);
    return { name, value, element: group };
  }
  if (options(member)) {
    const list = options(member).map(({ value, text }) =>
      element("option", { value, selected: value === member.default }, text),
    );
    if (!("default" in member)) list.unshift(element("option", { value: "" }, "Choose"));
    const select = element("select", { id, name, ...described }, ...list);
    return shown(select, () => select.value || undefined);
  }
  if (member.type === "integer" || member.type === "number") {
    const input = element("input", { id, name, inputmode: "decimal", value: member.default, ...described });
    return shown(input, () => (input.value.trim() === "" ? undefined : number(input.value)));
  }
  if (member.type === "string") {
    const type = { date: "date", email: "email", uri: "url" }[member.format] ?? "text";
    const input = element("input", {
      id,
      name,
      type,
      value: member.default,
      placeholder: member.format === "date-time" ? "2026-07-28T10:00:00Z" : null,
      ...described,
    });
    return shown(input, () => (input.value === "" ? undefined : input.value));
  }
  const area = element("textarea", { id, name, rows: "3", placeholder: "JSON", ...described });
  area.value = "default" in member ? JSON.stringify(member.default) : "";
  return shown(area, () => (area.value.trim() === "" ? undefined : JSON.parse(area.value)));
}

/** What a number field says: a number, or the text as it is for the server to refuse. */
function number(text) {
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function options(member) {
  if (member?.enum) return member.enum.map((value, index) => ({ value, text: member.enumNames?.[index] ?? value }));
  const titled = member?.oneOf ?? member?.anyOf;
  return titled?.every((each) => "const" in each)
    ? titled.map((each) => ({ value: each.const, text: each.title ?? each.const }))
    : null;
}
