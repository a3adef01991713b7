/** The texts of some fields of a form, without the spaces around them. */
export function texts<Name extends string>(form: HTMLFormElement, ...names: Name[]): Record<Name, string> {
  const data = new FormData(form);
  return Object.fromEntries(names.map((name) => [name, String(data.get(name) ?? "").trim()])) as Record<Name, string>;
}
